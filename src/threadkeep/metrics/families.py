"""What the stores reported, as Prometheus's metric families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from threadkeep.metrics.names import BYTES, LASTING, QUERIES
from threadkeep.metrics.stored import StoredFacts
from threadkeep.ports.usage import Spread, ThreadTotals

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
