"""Signals that end a command, as an exit that lets it clean up first."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stop_by_exit() -> Generator[None]:
    """The first of them raises SystemExit, those after it wait for the cleaning. What was ignored stays so (nohup)."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def stop(number: int, frame: FrameType | None) -> None:
        for other in heard:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)
