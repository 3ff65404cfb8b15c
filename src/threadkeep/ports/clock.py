"""Time as a parameter, so that tests can move it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]

system_clock: Clock = partial(datetime.now, UTC)
