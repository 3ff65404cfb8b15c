"""Questions for a time or a number, and turns that tell one, in four languages."""

from __future__ import annotations

import pytest

from threadkeep.recall.normalise import fold
from threadkeep.recall.question import has_number, has_time, wants_number, wants_time

WHEN = [
    "When did we meet?",
    "Khi nào chúng ta gặp nhau?",
    "Kiedy się spotkaliśmy?",
    "我們什麼時候見面的?",
    "khi nao gap",
]
HOW_MANY = ["How many cats?", "Có bao nhiêu con mèo?", "Ile masz kotów?", "你有多少隻貓?"]
TIMES = ["I went yesterday", "last summer, I think", "hôm qua", "w zeszłym tygodniu", "昨天去的", "in 1998"]
NUMBERS = ["3 of them", "two cats", "hai con", "dwa koty", "三隻"]


@pytest.mark.parametrize("text", WHEN)
def test_a_question_for_a_time_is_known(text: str) -> None:
    assert wants_time(fold(text))
    assert not wants_number(fold(text))


@pytest.mark.parametrize("text", HOW_MANY)
def test_a_question_for_a_number_is_known(text: str) -> None:
    assert wants_number(fold(text))
    assert not wants_time(fold(text))


@pytest.mark.parametrize("text", TIMES)
def test_a_turn_that_tells_a_time_is_known(text: str) -> None:
    assert has_time(fold(text))


@pytest.mark.parametrize("text", NUMBERS)
def test_a_turn_that_tells_a_number_is_known(text: str) -> None:
    assert has_number(fold(text))


@pytest.mark.parametrize("text", ["", "we like tea", "ładna pogoda", "我喜歡茶"])
def test_a_turn_that_tells_neither_is_not(text: str) -> None:
    assert not has_time(fold(text))
    assert not has_number(fold(text))
