"""Distinguishing a stale writer from one that forks on purpose.

Two runs that both read the latest checkpoint and both continue from it fork the thread; neither knows of the other. Who
names a checkpoint when reading (time travel, `update_state` on a snapshot) forks on purpose. A put does not say which
it is, but the reading before it does: LangGraph reads first, and its puts inherit the context of that reading.
"""

from __future__ import annotations

from contextvars import ContextVar

from threadkeep.adapters.langgraph.location import Location

_Key = tuple[bytes, str, str | None]
_named: ContextVar[frozenset[_Key]] = ContextVar("threadkeep_named_checkpoints", default=frozenset())


def note_reading(location: Location, found: str | None) -> None:
    """What was read in this context: the checkpoint that was named, or `found` as the latest.

    LangGraph may ask for the latest right after it named one, to know whether it is going back. So a name is forgotten
    only when another replaces it, or when it turns out to be the latest: then this is no fork.
    """
    given = location.checkpoint is not None
    here = {key for key in _named.get() if key[:2] == (location.thread.key, location.ns)}
    removed = here if given else {key for key in here if key[2] == found}
    added = {_key(location)} if given else set[_Key]()
    if removed or added:
        _named.set((_named.get() - removed) | added)


def goes_back_on_purpose(location: Location) -> bool:
    return _key(location) in _named.get()


def _key(location: Location) -> _Key:
    return location.thread.key, location.ns, location.checkpoint
