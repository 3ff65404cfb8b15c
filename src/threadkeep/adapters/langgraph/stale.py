"""Telling a stale writer from one who goes back on purpose.

Two runs that both read the latest checkpoint and both go on from it fork the thread; neither knows of the other. Who
names a checkpoint when reading (time travel, `update_state` on a snapshot) forks on purpose. A put does not say which
it is, but the reading before it does: LangGraph reads first, and its puts inherit the context of that reading.
"""

from __future__ import annotations

from contextvars import ContextVar

from threadkeep.adapters.langgraph.place import Place

_Key = tuple[bytes, str, str | None]
_named: ContextVar[frozenset[_Key]] = ContextVar("threadkeep_named_checkpoints", default=frozenset())


def note_reading(place: Place, found: str | None) -> None:
    """What was read in this context: the checkpoint that was named, or `found` as the latest.

    LangGraph may ask for the latest right after it named one, to know whether it is going back. So a name is forgotten
    only when another takes its place, or when it turns out to be the latest: then nobody goes back.
    """
    given = place.checkpoint is not None
    here = {key for key in _named.get() if key[:2] == (place.thread.key, place.ns)}
    gone = here if given else {key for key in here if key[2] == found}
    added = {_key(place)} if given else set[_Key]()
    if gone or added:
        _named.set((_named.get() - gone) | added)


def goes_back_on_purpose(place: Place) -> bool:
    return _key(place) in _named.get()


def _key(place: Place) -> _Key:
    return place.thread.key, place.ns, place.checkpoint
