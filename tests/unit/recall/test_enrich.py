"""Follow-up questions borrow what the talk was about; others are left alone."""

from __future__ import annotations

import pytest

from threadkeep.recall.normalise import stem
from threadkeep.recall.question import Asked, Question, enriched, missing

TALK = [Asked("What are the common types of breast cancer?", "Ductal carcinoma begins in the milk duct.")]

UNSAID = [
    "How deadly is it?",
    "And the treatment?",
    "Nó nguy hiểm không?",
    "A ile to kosztuje, jego leczenie?",
    "那它呢?",
    "Why?",
]
WHOLE = [
    "What are the most common treatments for lobular carcinoma in older patients?",
    "Which museums in Warsaw are open on Monday evenings during winter holidays?",
]


@pytest.mark.parametrize("text", UNSAID)
def test_a_question_that_points_back_borrows_the_topic(text: str) -> None:
    weights = enriched(text, TALK).weights
    assert 0 < weights[stem("cancer")] <= 1


@pytest.mark.parametrize("text", WHOLE)
def test_a_question_that_speaks_for_itself_is_left_as_it_is(text: str) -> None:
    assert missing(text) == 0
    assert enriched(text, TALK).weights == Question(text).weights


@pytest.mark.parametrize(
    "text",
    ["Who designed the Eiffel Tower?", "NASUWT là gì?", "Ai hát quốc ca?", "Kto napisał Lalkę?", "巴黎鐵塔多高？"],
)
def test_a_short_question_about_something_else_is_left_as_it_is(text: str) -> None:
    assert enriched(text, TALK).weights == Question(text).weights


@pytest.mark.parametrize(
    ("earlier", "text", "borrowed"),
    [
        (Asked("Types of breast cancer?", "Lobular carcinoma starts in lobules"), "Is lobular common?", "cancer"),
        (Asked("Thành phố Huế ở đâu?", "Thành phố Huế nằm bên sông Hương"), "Sông Hương dài bao nhiêu?", "hue"),
    ],
)
def test_a_short_question_about_what_was_answered_borrows_the_topic(earlier: Asked, text: str, borrowed: str) -> None:
    assert 0 < enriched(text, [earlier]).carried[stem(borrowed)] <= 1


@pytest.mark.parametrize(
    "text",
    [
        "Where did Tesla live for much of his life?",
        "What part of Luther's career was one of his most productive?",
        "When did Victoria enact its constitution?",
        "Kiedy Chopin opuścił jego kraj?",
        "Who scored the most goals this season?",
    ],
)
def test_what_stands_for_a_name_in_the_question_itself_does_not_point_back(text: str) -> None:
    assert enriched(text, TALK).weights == Question(text).weights


@pytest.mark.parametrize(
    "text",
    ["Did Anna call him?", "How does his doctor in Boston treat it?", "HOW DEADLY IS IT?", "Was it worse in May?"],
)
def test_what_stands_for_something_else_than_a_name_beside_it_points_back(text: str) -> None:
    assert enriched(text, TALK).carried[stem("cancer")] > 0


@pytest.mark.parametrize(
    ("earlier", "text"),
    [
        (Asked("Which party won the election?", "The National Party"), "What party is favored in Bendigo and Geelong?"),
        (Asked("教師工會是什么？", "英國最大的教師工會"), "NASUWT是什么？"),
    ],
)
def test_a_short_question_whose_names_are_new_is_left_as_it_is(earlier: Asked, text: str) -> None:
    assert enriched(text, [earlier]).weights == Question(text).weights


def test_the_first_question_of_a_talk_has_nothing_to_borrow() -> None:
    assert enriched("How deadly is it?", []).weights == Question("How deadly is it?").weights


def test_what_is_asked_now_counts_fully() -> None:
    assert enriched("Is it deadly?", TALK).weights[stem("deadly")] == 1.0


def test_older_topics_fade() -> None:
    talk = [Asked("Tell me about zebras"), Asked("And about violins"), Asked("Now about gardening")]
    carried = enriched("What about them?", talk).carried
    assert carried[stem("gardening")] > carried[stem("violins")]


def test_only_the_last_three_questions_and_the_first_are_remembered() -> None:
    talk = [Asked(f"Tell me about {topic}") for topic in ("zebras", "violins", "gardening", "sailing", "chess")]
    carried = enriched("What about them?", talk).carried
    assert {stem("zebras"), stem("gardening"), stem("sailing"), stem("chess")} <= carried.keys()
    assert stem("violins") not in carried


def test_what_the_last_answer_speaks_of_is_carried_more() -> None:
    plain = enriched("How deadly is it?", [Asked("ductal carcinoma or lobular carcinoma"), Asked("tell more")]).carried
    told = enriched(
        "How deadly is it?",
        [Asked("ductal carcinoma or lobular carcinoma"), Asked("tell more", "Lobular carcinoma starts in lobules")],
    ).carried
    assert told[stem("lobular")] > plain[stem("lobular")]
    assert told[stem("ductal")] == plain[stem("ductal")]


def test_what_was_given_before_is_remembered() -> None:
    assert enriched("Why?", TALK, given=["m1"]).given == {"m1"}


@pytest.mark.parametrize(
    ("little", "text", "lent"),
    [
        ("and how much is that?", "Is it loud?", {"and", "how", "much", "is", "that"}),
        ("A dlaczego to tak?", "A gwarancja?", {"a", "dlaczego", "to", "tak"}),
        ("Và cái đó là gì vậy?", "Còn bảo hành?", {"va", "la", "gi"}),
        ("那為什麼呢？", "那洗牙呢？", {"為什", "什麼", "為", "什", "麼"}),
        ("ile to jest?", "And the warranty of the dishwasher?", {"ile", "to", "jest"}),
    ],
)
def test_little_words_are_not_lent(little: str, text: str, lent: set[str]) -> None:
    talk = [Asked("Fjord 42 dB"), Asked(little)]
    assert not {stem(word) for word in lent} & enriched(text, talk, at_least=0.3).carried.keys()
    assert stem("fjord") in enriched(text, talk, at_least=0.3).carried
