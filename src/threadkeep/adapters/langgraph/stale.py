"""Telling a stale writer from one who goes back on purpose.

Two runs that both read the latest checkpoint and both go on from it fork the thread; neither knows of the other. Who
names a checkpoint when reading (time travel, `update_state` on a snapshot) forks on purpose. A put does not say which
it is, but the reading before it does: LangGraph reads first, and its puts inherit the context of that reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from threadkeep.adapters.langgraph.place import Place

_Key = tuple[bytes, str, str | None]
_named: ContextVar[frozenset[_Key]] = ContextVar("threadkeep_named_checkpoints", default=frozenset())


def note_reading(place: Place) -> None:
    """In this context the checkpoint was named, or the latest was asked for."""
    others = frozenset(key for key in _named.get() if key[:2] != (place.thread.key, place.ns))
    _named.set(others if place.checkpoint is None else others | {_key(place)})


def goes_back_on_purpose(place: Place, metadata: Mapping[str, Any]) -> bool:
    """LangGraph itself marks the copy from which a replay goes on as a fork."""
    return metadata.get("source") == "fork" or _key(place) in _named.get()


def _key(place: Place) -> _Key:
    return place.thread.key, place.ns, place.checkpoint
