"""What is common in the talk of users who have said a lot, as a sample of their turns tells, kept for a while.

How common a common word is need not be known exactly, and counting it would take longer than all the rest of a search.
Kept are whole numbers and hashed words, no text; a search never finds a turn by them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LARGE = 5_000  # turns; of users with fewer everything is counted
SAMPLED = 600  # turns
COMMON = 8  # of them; a word that fewer hold is counted
_FRESH_SECONDS = 600.0
_MOST_USERS = 2_000


@dataclass(frozen=True, slots=True)
class Habits:
    uid: int
    turns: int
    terms: int
    common: Mapping[int, float]  # words, and the share of turns that hold them; none of a user who said little

    @property
    def large(self) -> bool:
        return self.turns > LARGE

    def holding(self, word: int) -> int | None:
        """About how many turns; None where it must be counted."""
        share = self.common.get(word)
        return None if share is None else max(1, round(share * self.turns))


class KnownHabits:
    """Of the users asked about lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Habits]] = OrderedDict()

    def get(self, owner: tuple[str, str]) -> Habits | None:
        """None where nothing fresh is known."""
        noted, habits = self._kept.get(owner, (0.0, None))
        if habits is None or self._clock() - noted > _FRESH_SECONDS:
            self._kept.pop(owner, None)
            return None
        self._kept.move_to_end(owner)
        return habits

    def put(self, owner: tuple[str, str], habits: Habits) -> Habits:
        self._kept[owner] = (self._clock(), habits)
        self._kept.move_to_end(owner)
        if len(self._kept) > _MOST_USERS:
            self._kept.popitem(last=False)
        return habits

    def forget(self, owner: tuple[str, str]) -> None:
        self._kept.pop(owner, None)
