"""What is kept of large users' habits."""

from __future__ import annotations

from threadkeep.index.gin import LARGE, Habits


def _habits(turns: int = 2 * LARGE) -> Habits:
    return Habits(uid=1, turns=turns, terms=10 * turns, common={7: 0.25})


def test_a_common_words_share_tells_how_many_turns_hold_it() -> None:
    habits = _habits(turns=10_000)
    assert habits.large
    assert habits.holding(7) == 2_500
    assert habits.holding(8) is None
    assert not _habits(turns=LARGE).large
