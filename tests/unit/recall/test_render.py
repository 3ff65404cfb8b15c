"""What is recalled stays within the budget, counted as the model will count it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadkeep.model import Hit
from threadkeep.models.tokens import ENCODINGS, Tokenizer
from threadkeep.recall.render import fenced, tokens_in, within_budget

COUNT = {name: Tokenizer(name).count for name in ENCODINGS}
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def hits_of(texts: list[str]) -> list[Hit]:
    return [Hit(f"m{i}", "c1", i, "user", text, NOON, 1.0 / (i + 1), {}) for i, text in enumerate(texts)]


@settings(deadline=None)
@given(texts=st.lists(st.text(), max_size=8), budget=st.integers(0, 300))
@pytest.mark.parametrize("name", ENCODINGS)
def test_the_text_is_never_over_the_budget_in_the_models_own_tokens(name: str, texts: list[str], budget: int) -> None:
    kept = within_budget(hits_of(texts), budget, COUNT[name])
    assert COUNT[name](fenced(kept)) <= budget


FOUR_LANGUAGES = [
    "I am allergic to peanuts and would rather have the soup of the day, thank you very much",
    "Tôi bị dị ứng đậu phộng nên xin đừng cho vào món ăn, cảm ơn bạn rất nhiều",
    "Jestem uczulony na orzeszki ziemne, więc proszę o zupę dnia bez żadnych dodatków",
    "我對花生過敏，所以請不要放在菜裡，謝謝您的幫忙",
]


@pytest.mark.parametrize("text", FOUR_LANGUAGES)
def test_where_there_is_no_tokenizer_the_estimate_errs_on_the_side_of_the_budget(text: str) -> None:
    assert COUNT["cl100k_base"](text) <= tokens_in(text) <= 2 * COUNT["cl100k_base"](text)


def test_a_tokenizer_that_counts_exactly_keeps_more_than_the_estimate() -> None:
    hits = hits_of(FOUR_LANGUAGES * 5)
    exact = within_budget(hits, 300, COUNT["cl100k_base"])
    assert len(exact) > len(within_budget(hits, 300)) > 0
