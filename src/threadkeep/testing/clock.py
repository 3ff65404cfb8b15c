"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class FakeClock:
    """Pass it wherever a `Clock` is wanted."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        """Negative seconds set it back, as a corrected system clock would."""
        self.now += timedelta(seconds=seconds)
        return self.now
