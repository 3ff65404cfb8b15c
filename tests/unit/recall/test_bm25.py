"""BM25: what a term tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.recall.bm25 import Saturation, rarity, score

HOW = Saturation()


@given(total=st.integers(0, 10**6), holding=st.integers(0, 10**6))
def test_rarity_is_never_negative_even_where_counts_disagree(total: int, holding: int) -> None:
    assert rarity(holding, total) >= 0


def test_a_rarer_term_tells_more() -> None:
    assert rarity(1, 100) > rarity(10, 100) > rarity(100, 100) > 0


def test_repeating_a_term_helps_less_and_less() -> None:
    once, twice, often = (score([("tea", count)], {"tea": 1.0}, 1.0, HOW) for count in (1, 2, 50))
    assert once < twice < often < HOW.repeats + 1
    assert often - twice < (twice - once) * 3


def test_a_long_text_is_held_back() -> None:
    assert score([("tea", 1)], {"tea": 1.0}, 4.0, HOW) < score([("tea", 1)], {"tea": 1.0}, 1.0, HOW)


def test_nothing_is_worth_nothing_and_terms_add_up() -> None:
    weights = {"tea": 1.0, "milk": 2.0}
    assert score([], weights, 1.0, HOW) == 0
    assert score([("tea", 3), ("milk", 2)], weights, 1.0, HOW) == pytest.approx(
        score([("tea", 3)], weights, 1.0, HOW) + score([("milk", 2)], weights, 1.0, HOW)
    )
