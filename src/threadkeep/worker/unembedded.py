"""Which numbers are still to be looked through. They are given when a message is stored, and seen when it commits."""

from __future__ import annotations

from collections import deque

from threadkeep.ports.backlog import Span

_STEP = 10_000  # numbers looked through at once
_APART_SECONDS = 1.0  # between notes of how far it was


class Spans:
    """The newest comes first, however much older work there is.

    A number may be seen up to `late_seconds` after a higher one: its transaction took long.
    """

    def __init__(self, late_seconds: float) -> None:
        self._late_seconds = late_seconds
        self._open: list[Span] = []  # the newest last
        self._highest: deque[tuple[float, int]] = deque([(float("-inf"), 0)])
        self._sweeping = False

    def everything(self, newest: int, now: float) -> None:
        """Look through all there is."""
        self._open = _steps(0, newest)
        self._sweeping = True
        self._note(newest, now)

    def upto(self, newest: int, now: float) -> None:
        """Look through what is new, and through what may have come late."""
        while len(self._highest) > 1 and now - self._highest[1][0] >= self._late_seconds:
            self._highest.popleft()
        settled = min(self._highest[0][1], newest)
        self._open = [span for span in self._open if span.after < settled] + _steps(settled, newest)
        self._note(newest, now)

    def again(self, number: int) -> None:
        self._open.append(Span(number - 1, number))

    def newest(self) -> Span | None:
        return self._open[-1] if self._open else None

    def done(self, span: Span, upto: int) -> None:
        """Of this span only what lies at or below `upto` is left."""
        self._open.remove(span)
        if upto > span.after:
            self._open.append(Span(span.after, upto))

    def all_seen(self) -> bool:
        """Whether a look through everything has come to its end; told once."""
        seen = self._sweeping and not self._open
        if seen:
            self._sweeping = False
        return seen

    def _note(self, newest: int, now: float) -> None:
        """Rows at the end may have been erased, and their numbers be given again."""
        self._highest = deque((at, min(number, newest)) for at, number in self._highest)
        last_at, last = self._highest[-1]
        if newest > last and now - last_at >= min(_APART_SECONDS, self._late_seconds):
            self._highest.append((now, newest))


def _steps(after: int, upto: int) -> list[Span]:
    return [Span(start, min(start + _STEP, upto)) for start in range(after, upto, _STEP)]
