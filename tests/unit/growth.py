"""That work grows as the text does that it is given, told so that a busy machine does not change the answer."""

from __future__ import annotations

import time
from collections.abc import Callable

ROUNDS = 10
MOMENT = 0.005
"""Seconds: what takes less is taken for that much."""


def assert_growth(work: Callable[[str], object], short: str, long: str, *, at_most: float) -> None:
    """The processor time of the long one is at most so many times that of the short one, the least of either.

    They are measured in turn, and again only for as long as it is more: whatever else goes on only adds to what a round
    takes, so that work which stays above the bound is above it by itself.
    """
    least_short = least_long = float("inf")
    for _ in range(ROUNDS):
        least_short = min(least_short, _seconds(work, short))
        least_long = min(least_long, _seconds(work, long))
        if least_long <= at_most * max(least_short, MOMENT):
            return
    raise AssertionError(
        f"{len(long) / len(short):.3g} times the text took {least_long / least_short:.3g} times as long"
    )


def _seconds(work: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    work(text)
    return time.process_time() - started
