"""A meter that Prometheus can read: one for each process, or files that several processes share.

Several share a folder (`PROMETHEUS_MULTIPROC_DIR`): each writes files of its own, a scrape of any of them adds all up.
Only counts and histograms stand there, so what a process has counted outlives it, even when it is killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from threadkeep.metrics.dead_files import fold_dead, reading, written
from threadkeep.metrics.names import COUNTED, Counted

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
            self._make(one)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        metric = self._counters[name]
        (metric.labels(**labels) if labels else metric).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        metric = self._histograms[name]
        (metric.labels(**labels) if labels else metric).observe(value)

    def exposition(self, accept: str, more: Iterable[Metric] = ()) -> tuple[str, bytes]:
        """The content type that was asked for, and all metrics in it: this process's, or those of all that share."""
        if self._folder is None:
            own = [_without_birthdays(metric) for metric in self._registry.collect()]
        else:
            own = counted_together(self._folder)
        return exposition([*own, *more], accept)

    def _make(self, one: Counted) -> None:
        labels = () if one.label is None else (one.label,)
        made: Counter | Histogram
        if one.kind == "counter":
            made = self._counters[one.name] = Counter(one.name, one.help, labels, registry=self._registry)
        else:
            made = Histogram(one.name, one.help, labels, registry=self._registry, buckets=one.buckets)
            self._histograms[one.name] = made
        for value in one.seen:
            made.labels(value)


def counted_together(folder: str) -> list[Metric]:
    with reading(folder):
        return list(MultiProcessCollector.merge(written(folder)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


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
    """The library adds when each series was made; files have no such thing, and nobody asks."""
    metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    return metric
