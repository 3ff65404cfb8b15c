"""What is kept of large users' habits: for a while, of a bounded number of them."""

from __future__ import annotations

from threadkeep.index.gin import LARGE, Habits, KnownHabits

ANN = ("shop", "ann")


def _habits(turns: int = 2 * LARGE) -> Habits:
    return Habits(uid=1, turns=turns, terms=10 * turns, common={7: 0.25})


def test_a_common_words_share_tells_how_many_turns_hold_it() -> None:
    habits = _habits(turns=10_000)
    assert habits.large
    assert habits.holding(7) == 2_500
    assert habits.holding(8) is None
    assert not _habits(turns=LARGE).large


def test_habits_are_forgotten_after_a_while() -> None:
    now = [0.0]
    known = KnownHabits(clock=lambda: now[0])
    known.put(ANN, _habits())
    now[0] = 599.0
    assert known.get(ANN) is not None  # being asked for does not keep them
    now[0] = 601.0
    assert known.get(ANN) is None


def test_only_so_many_users_are_kept() -> None:
    known = KnownHabits()
    for number in range(3_000):
        known.put(("shop", f"user{number}"), _habits())
    assert known.get(("shop", "user0")) is None
    assert known.get(("shop", "user2999")) is not None
