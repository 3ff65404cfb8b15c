"""What may go from a thread so that all that stays can still be read, delta channels included.

A delta channel keeps a snapshot only now and then; in between its value is its ancestors' writes. So a checkpoint
that stays holds on to its ancestors back to a snapshot of each such channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from threadkeep.adapters.langgraph.body import runs_in, unpack_body
from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.pages import emptied
from threadkeep.adapters.langgraph.reading import in_flight, metadata_of, where_is
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import Plan, Removal, StoredCheckpoint

Key = tuple[str, str]  # namespace, checkpoint


def keep_latest(codec: Codec) -> Plan:
    """Of each namespace the newest, and what it needs. Where that is in flight, also what its turn continued: all
    that stays if the turn's key is lost."""

    def plan(rows: Sequence[StoredCheckpoint]) -> Removal:
        latest: dict[str, StoredCheckpoint] = {}
        for row in rows:  # newest first
            latest.setdefault(row.ns, row)
        by_key = {(row.ns, row.id): row for row in rows}
        return _all_but(rows, [one for row in latest.values() for one in _back_to_settled(row, by_key)], codec)

    return plan


def _back_to_settled(row: StoredCheckpoint, by_key: dict[Key, StoredCheckpoint]) -> list[StoredCheckpoint]:
    """It and its ancestors, up to the first that is not in flight."""
    line = [row]
    while in_flight(row) and row.parent is not None and (row.ns, row.parent) in by_key:
        row = by_key[row.ns, row.parent]
        if row in line:
            break
        line.append(row)
    return line


def without_runs(codec: Codec, run_ids: set[str]) -> Plan:
    """All but these runs' checkpoints; of those, what the others need stays as well."""

    def plan(rows: Sequence[StoredCheckpoint]) -> Removal:
        return _all_but(rows, [row for row in rows if _run_of(row, codec) not in run_ids], codec)

    return plan


def _run_of(row: StoredCheckpoint, codec: Codec) -> Any:
    """None where it is not known: of a turn in flight whose key is another's or was just destroyed."""
    try:
        return metadata_of(row, codec).get("run_id")
    except CheckpointCorrupt:
        if in_flight(row):
            return None
        raise


def _all_but(rows: Sequence[StoredCheckpoint], staying: Iterable[StoredCheckpoint], codec: Codec) -> Removal:
    by_key = {(row.ns, row.id): row for row in rows}
    kept: set[Key] = set()
    for row in staying:
        kept |= {(row.ns, row.id), *_needed(row, by_key, codec)}
    removed = [key for key in by_key if key not in kept]
    still_used = [run for key in kept for run in runs_in(by_key[key].body, where_is(by_key[key]))]
    return Removal(removed, still_used, emptied)


def _needed(row: StoredCheckpoint, by_key: dict[Key, StoredCheckpoint], codec: Codec) -> list[Key]:
    """The ancestors back to where every delta channel that has no value here has one. A turn in flight has no such."""
    if in_flight(row):
        return []
    seeking = set(metadata_of(row, codec).get("counters_since_delta_snapshot") or ())
    seeking -= {*unpack_body(row.body, codec, where_is(row)).refs}
    needed: list[Key] = []
    seen = {row.id}
    while seeking and row.parent is not None and row.parent not in seen and (row.ns, row.parent) in by_key:
        row = by_key[row.ns, row.parent]
        seen.add(row.id)
        needed.append((row.ns, row.id))
        seeking -= {*unpack_body(row.body, codec, where_is(row)).refs}
    return needed
