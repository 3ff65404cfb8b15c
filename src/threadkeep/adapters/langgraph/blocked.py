"""Types that a strict serializer refused to load. It puts their bare fields there and says so only in a log."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

_here = threading.local()


@contextmanager
def blocked_types() -> Generator[list[tuple[str, str]]]:
    """Module and name of each that is met inside the block, on this thread."""
    _here.blocked = blocked = list[tuple[str, str]]()
    try:
        yield blocked
    finally:
        _here.blocked = None


def _note(event: SerdeEvent) -> None:
    blocked = getattr(_here, "blocked", None)
    if blocked is not None and event["kind"] in ("msgpack_blocked", "msgpack_method_blocked"):
        blocked.append((event["module"], event["name"]))


register_serde_event_listener(_note)
