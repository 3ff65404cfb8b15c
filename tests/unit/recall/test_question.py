"""What a question asks for."""

from __future__ import annotations

import pytest

from threadkeep.recall.normalise import stem
from threadkeep.recall.question import Question


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("Where did I put the keys?", 1.0),
        ("Gdzie są moje klucze?", 0.0),
        ("chia khoa cua toi o dau", 0.0),
        ("Chìa khóa của tôi ở đâu?", 0.0),
        ("我的鑰匙在哪裡?", 0.0),
        ("peanut allergy", 0.5),
    ],
)
def test_english_is_told_from_its_little_words(text: str, sure: float) -> None:
    assert Question(text).is_english == sure


@pytest.mark.parametrize(
    "text", ["What is my budget?", "Ngân sách của tôi là bao nhiêu?", "Jaki jest mój budżet?", "我的預算是多少?"]
)
def test_a_question_about_me_is_known(text: str) -> None:
    assert Question(text).is_about_me


@pytest.mark.parametrize("text", ["What did you tell me?", "Co mi doradziłeś, co ty na to?", "你說了什麼?"])
def test_a_question_about_you_is_not_about_me(text: str) -> None:
    assert Question(text).is_about_you
    assert not Question(text).is_about_me


def test_a_question_about_others_is_about_neither() -> None:
    asked = Question("When did Caroline paint a sunrise?")
    assert not asked.is_about_me
    assert not asked.is_about_you


def test_pairs_of_syllables_count_for_less_than_syllables() -> None:
    weights = Question("hải sản tươi sống").weights
    assert weights["hai_san"] == 0.5
    assert weights[stem("tuoi")] == 1.0


def test_carried_terms_never_replace_what_is_asked() -> None:
    assert Question("peanut", carried={"peanut": 0.1, "soup": 0.2}).weights == {"peanut": 1.0, "soup": 0.2}


def test_a_question_in_syllables_is_told() -> None:
    assert Question("dị ứng đậu phộng").is_in_syllables
    assert not Question("peanut allergy").is_in_syllables
    assert not Question("花生過敏").is_in_syllables
