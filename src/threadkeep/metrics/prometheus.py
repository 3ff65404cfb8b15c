"""A meter that Prometheus can read, and what the stores reported, as Prometheus's metric families.

A process has one meter of its own, or several share a folder (`PROMETHEUS_MULTIPROC_DIR`): each writes files of its
own, a scrape of any of them adds all up. Only counts and histograms stand there, so what a process has counted outlives
it, even when it is killed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from threadkeep.metrics.measured import BYTES, COUNTED, LASTING, QUERIES
from threadkeep.metrics.stored import StoredFacts
from threadkeep.ports.threads import Spread, ThreadTotals

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class PrometheusMeter:
    """`folder` is there already, and only this account can write to it."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        if folder is not None:
            fold_dead(folder)
            # What the library does by itself where the variable is set before anybody imports it.
            os.environ[FOLDER_VARIABLE] = folder
            values.ValueClass = values.MultiProcessValue()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for one in COUNTED:
            labels = () if one.label is None else (one.label,)
            made: Counter | Histogram
            if one.kind == "counter":
                made = self._counters[one.name] = Counter(one.name, one.help, labels, registry=self._registry)
            else:
                made = Histogram(one.name, one.help, labels, registry=self._registry, buckets=one.buckets)
                self._histograms[one.name] = made
            for value in one.seen:
                made.labels(value)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        metric = self._counters[name]
        (metric.labels(**labels) if labels else metric).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        metric = self._histograms[name]
        (metric.labels(**labels) if labels else metric).observe(value)

    def exposition(self, accept: str, more: Iterable[Metric] = ()) -> tuple[str, bytes]:
        """The content type that was accepted, and all metrics in it: this process's, or those of all that share."""
        if self._folder is None:
            own = [_without_birthdays(metric) for metric in self._registry.collect()]
        else:
            own = counted_together(self._folder)
        return exposition([*own, *more], accept)


def counted_together(folder: str) -> list[Metric]:
    with _locked(folder, fcntl.LOCK_SH):
        # A process that was killed before it wrote to its file leaves it empty.
        files = [str(path) for path in Path(folder).glob("*.db") if path.stat().st_size]
        return list(MultiProcessCollector.merge(files))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def exposition(metrics: Sequence[Metric], accept: str = "") -> tuple[str, bytes]:
    registry = CollectorRegistry()
    registry.register(_These(metrics))  # pyright: ignore[reportArgumentType]
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


class _These:
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def _without_birthdays(metric: Metric) -> Metric:
    """The library adds when each series was made; files do not record it, and no dashboard uses it."""
    metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    return metric


_KINDS = ("counter", "histogram")
_ENDED = 0  # no process has this number


def fold_dead(folder: str) -> None:
    """Killed on the way, it loses what the dead had counted; Prometheus takes that for a restart."""
    with _locked(folder, fcntl.LOCK_EX):
        for kind in _KINDS:
            dead = [path for path in Path(folder).glob(f"{kind}_*.db") if not _runs(path)]
            if len(dead) > 1:
                _fold(dead, Path(folder) / f"{kind}_{_ENDED}.db")


def _fold(dead: list[Path], into: Path) -> None:
    totals: dict[str, float] = {}
    for path in dead:
        if not path.stat().st_size:
            continue
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(path)):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            totals[str(key)] = totals.get(str(key), 0.0) + float(value)  # pyright: ignore[reportUnknownArgumentType]
    new = into.with_suffix(".new")
    new.unlink(missing_ok=True)
    kept = MmapedDict(str(new))
    for key, value in totals.items():
        kept.write_value(key, value, 0.0)  # pyright: ignore[reportUnknownMemberType]
    kept.close()
    for path in dead:
        path.unlink()
    new.replace(into)


def _runs(path: Path) -> bool:
    number = path.stem.rpartition("_")[2]
    if not number.isdigit():
        return True  # not a name of ours: let it be
    if int(number) == _ENDED:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another process's
    return True


@contextmanager
def _locked(folder: str, how: int) -> Generator[None]:
    with (Path(folder) / "folding.lock").open("a") as lock:
        fcntl.flock(lock, how)
        yield


_DEPTH = {
    "entries": ("threadkeep_journal_entries", "Entries of the journal that are not in the archive yet"),
    "claimed": ("threadkeep_journal_claimed_entries", "Those of them that a worker has in hand"),
    "oldest_seconds": ("threadkeep_journal_lag_seconds", "Age of the oldest entry that is not in the archive yet"),
    "dead": ("threadkeep_dead_letters", "Entries that were given up on and not replayed or dropped"),
}


def families(facts: StoredFacts) -> Iterator[Metric]:
    up = GaugeMetricFamily("threadkeep_store_up", "Whether a store answers", labels=["store"])
    for store, state in facts.health.stores.items():
        up.add_metric([store], float(state == "ok"))
    yield up
    yield GaugeMetricFamily(
        "threadkeep_can_store", "Whether an append would be stored or queued now", float(facts.health.can_store)
    )
    if (used := facts.health.connections) is not None:
        yield GaugeMetricFamily("threadkeep_connections_in_use", "Connections to the archive in use", used.in_use)
        yield GaugeMetricFamily("threadkeep_connections_most", "Connections that the process may open", used.most)
    if facts.health.lag is not None:
        for field, value in asdict(facts.health.lag).items():
            yield GaugeMetricFamily(*_DEPTH[field], value=value)
    if facts.threads is not None:
        yield from _of_threads(facts.threads)


def _of_threads(threads: ThreadTotals) -> Iterator[Metric]:
    yield GaugeMetricFamily("conversation_total_active", "Conversations that have not expired", threads.active)
    queries = _histogram(
        "conversation_queries_per_conversation", "Queries of each stored conversation", QUERIES, threads.queries
    )
    # A histogram has no series of its bare name, and a panel that was written for one queries `avg(…)` of it.
    average = threads.queries.sum / threads.queries.count if threads.queries.count else 0.0
    queries.add_sample("conversation_queries_per_conversation", {}, average)
    yield queries
    yield _histogram("conversation_duration_seconds", "From first to last activity of each", LASTING, threads.seconds)
    yield _histogram("conversation_state_size_bytes", "Bytes stored of each conversation", BYTES, threads.bytes)
    yield GaugeMetricFamily(
        "checkpoint_storage_total_bytes", "Bytes of all checkpoints and what they refer to", threads.bytes.sum
    )


def _histogram(name: str, about: str, bounds: Sequence[float], spread: Spread) -> Metric:
    buckets = [(str(bound), float(count)) for bound, count in zip(bounds, spread.within, strict=True)]
    return HistogramMetricFamily(name, about, [*buckets, ("+Inf", float(spread.count))], spread.sum)
