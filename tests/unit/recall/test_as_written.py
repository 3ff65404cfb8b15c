"""Words with their marks, beside the folded terms they are found by."""

from __future__ import annotations

from tests.unit.recall.said import evidence_of
from threadkeep.recall.question import Question
from threadkeep.recall.score import AsWritten


def worth(question: str, texts: list[str | tuple[str, str]]) -> list[float]:
    asked = Question(question)
    evidence = evidence_of(asked, texts)
    return AsWritten(question, asked.weights).worth(evidence.turns, evidence.statistics)


def test_a_question_without_marks_asks_for_none() -> None:
    assert not AsWritten("peanut allergy", Question("peanut allergy").weights)
    assert not AsWritten("花生過敏", Question("花生過敏").weights)


def test_a_word_of_the_question_that_nobody_looks_for_is_left_out() -> None:
    assert not AsWritten("là gì", {})


def test_only_the_word_as_it_was_asked_for_counts() -> None:
    ghost, mother, plain = worth("mạ", ["con ma", "cây mạ", "con mạ"])
    assert ghost == 0
    assert mother == plain > 0


def test_a_rarer_form_counts_for_more() -> None:
    texts: list[str | tuple[str, str]] = ["mạ xanh", "mạ non", "mạ vàng", "lúa chín"]
    found = worth("mạ lúa chín", texts)
    assert found[3] > found[0]


def test_marks_set_apart_are_the_same_marks() -> None:
    assert worth("mạ", ["con ma\u0323"])[0] == worth("ma\u0323", ["con mạ"])[0] > 0


def test_a_word_without_marks_counts_too_where_others_of_the_question_have_them() -> None:
    plain, marked = worth("ma mạ", ["con ma kia", "con má kia"])
    assert plain > 0
    assert marked == 0
