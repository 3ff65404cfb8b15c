"""What must be true of a place after the load: each metric against a count of the load's own, or of the database's."""

from __future__ import annotations

import pytest

from tests.metrics.conftest import Place
from tests.metrics.load import APPENDS

# As the document of the retrieval system names and types them.
ITS_OWN = {
    "conversation_total_active": "gauge",
    "conversation_queries_per_conversation": "histogram",
    "conversation_duration_seconds": "histogram",
    "conversation_checkpoint_size_bytes": "histogram",
    "checkpoint_save_duration_seconds": "histogram",
    "checkpoint_load_duration_seconds": "histogram",
    "checkpoint_list_duration_seconds": "histogram",
    "conversation_state_size_bytes": "histogram",
    "checkpoint_storage_total_bytes": "gauge",
}
OURS = {
    "threadkeep_append_duration_seconds": "histogram",
    "threadkeep_recall_duration_seconds": "histogram",
    "threadkeep_retrieval_duration_seconds": "histogram",
    "threadkeep_flush_duration_seconds": "histogram",
    "threadkeep_flushed_entries": "counter",
    "threadkeep_refused_events": "counter",
    "threadkeep_redactions": "counter",
    "threadkeep_cache_lookups": "counter",
    "threadkeep_cache_failures": "counter",
    "threadkeep_journal_entries": "gauge",
    "threadkeep_journal_claimed_entries": "gauge",
    "threadkeep_journal_lag_seconds": "gauge",
    "threadkeep_dead_letters": "gauge",
    "threadkeep_store_up": "gauge",
    "threadkeep_can_store": "gauge",
}
ON_SERVERS = {"threadkeep_connections_in_use": "gauge", "threadkeep_connections_most": "gauge"}
BYTES = (
    "SELECT (SELECT sum(length(checkpoint_blob) + length(metadata_blob)) FROM conversation_checkpoints)"
    " + (SELECT coalesce(sum(length(data)), 0) FROM tk_checkpoint_items)"
    " + (SELECT coalesce(sum(length(data)), 0) FROM tk_checkpoint_writes)"
)


def every_metric_is_there_with_its_type(place: Place) -> None:
    assert place.told().types == ITS_OWN | OURS


def memory_s_verbs_are_counted_as_they_were_answered(place: Place) -> None:
    told, counted = place.told(), place.counted
    assert told.by("threadkeep_append_duration_seconds_count", "status") == dict(counted.statuses)
    assert told.by("threadkeep_recall_duration_seconds_count", "status") == {"whole": counted.recalls}
    assert told.by("threadkeep_refused_events_total", "reason") == dict(counted.refused)
    assert told.by("threadkeep_redactions_total", "type") == dict(counted.redacted)
    assert counted.refused.keys() == {"thought", "tool_result"}
    assert counted.redacted.keys() == {"EMAIL", "PHONE"}


def questions_to_documents_and_the_cache_are_counted(place: Place) -> None:
    told, counted = place.told(), place.counted
    assert told.by("threadkeep_retrieval_duration_seconds_count", "status") == dict(counted.asked)
    assert told.by("threadkeep_cache_lookups_total", "outcome") == dict(counted.looked_up)
    assert counted.looked_up["hit"]
    assert told("threadkeep_cache_failures_total") == 0


def the_way_from_the_journal_to_the_archive_is_counted(place: Place) -> None:
    told = place.told()
    appended = place.row("SELECT count(*) FROM tk_conversations WHERE conversation LIKE 'c%'")[0]
    assert told("threadkeep_flushed_entries_total") == appended == APPENDS
    assert told("threadkeep_flush_duration_seconds_count", status="placed") >= 1
    assert told("threadkeep_journal_entries") == told("threadkeep_journal_claimed_entries") == 0
    assert told("threadkeep_journal_lag_seconds") == 0
    assert told("threadkeep_dead_letters") == 1
    assert told.by("threadkeep_store_up", "store") == {"archive": 1, "redis": 1}
    assert told("threadkeep_can_store") == 1


def checkpoints_are_counted_as_they_are_stored(place: Place) -> None:
    told, asked = place.told(), place.counted.queries.total()
    put = place.row("SELECT count(*) FROM conversation_checkpoints")[0]
    assert put == asked + place.app["put"]
    assert told("checkpoint_save_duration_seconds_count") == put
    assert told("conversation_checkpoint_size_bytes_count") == put
    assert told("conversation_checkpoint_size_bytes_sum") == place.row(BYTES)[0]
    assert told("checkpoint_load_duration_seconds_count") == asked + place.app["read"]
    assert told("checkpoint_list_duration_seconds_count") == place.app["pages"]
    assert told("checkpoint_storage_total_bytes") == place.row(BYTES)[0]


def conversations_are_counted_as_they_are_stored(place: Place) -> None:
    place.row("UPDATE conversation_metadata SET started_at = last_activity_at - 90000000 WHERE thread_id LIKE 'talk%'")
    told, talks = place.told(), len(place.counted.queries)
    threads = talks + (3 if place.app["put"] else 0)
    assert told("conversation_total_active") == threads
    assert told("conversation_queries_per_conversation_count") == threads
    assert told("conversation_queries_per_conversation_sum") == place.counted.queries.total()
    assert told("conversation_queries_per_conversation") == place.counted.queries.total() / threads
    for bound in (1, 2):
        few = sum(asked <= bound for asked in place.counted.queries.values()) + threads - talks
        assert told("conversation_queries_per_conversation_bucket", le=f"{bound}.0") == few
    assert told("conversation_duration_seconds_count") == threads
    assert told("conversation_duration_seconds_bucket", le="60.0") == threads - talks
    assert told("conversation_duration_seconds_sum") == pytest.approx(90 * talks, abs=1)
    assert told("conversation_state_size_bytes_count") == threads
    assert told("conversation_state_size_bytes_sum") == place.row(BYTES)[0]


def every_time_is_a_time(place: Place) -> None:
    told = place.told()
    for name in (name for name, kind in place.told().types.items() if kind == "histogram" and "duration" in name):
        assert told.total(f"{name}_sum") >= 0, name
        assert told.total(f"{name}_sum") > 0 or not told.total(f"{name}_count"), name


def no_label_names_anybody(place: Place) -> None:
    values = {value for _, labels in place.told().samples for name, value in labels if name != "le"}
    assert values == {
        *("stored", "queued", "failed", "whole", "degraded", "found", "cached", "placed", "hit", "miss"),
        *("thought", "tool_result", "EMAIL", "PHONE", "archive", "redis"),
    }
    assert not values & place.counted.ids


CHECKS = (
    every_metric_is_there_with_its_type,
    memory_s_verbs_are_counted_as_they_were_answered,
    questions_to_documents_and_the_cache_are_counted,
    the_way_from_the_journal_to_the_archive_is_counted,
    checkpoints_are_counted_as_they_are_stored,
    conversations_are_counted_as_they_are_stored,
    every_time_is_a_time,
    no_label_names_anybody,
)
