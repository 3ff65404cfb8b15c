"""What speaks for a turn, feature by feature."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.recall.said import evidence_of
from threadkeep.recall.question import Question
from threadkeep.recall.score import DEFAULT, Reading

LONG = "which is why the committee took the whole of the afternoon over it and wrote a report of several pages " * 8


def columns(question: str, texts: list[str | tuple[str, str]], **more: object) -> dict[str, list[float]]:
    asked = Question(question)
    return dict(Reading(asked, evidence_of(asked, texts, **more)).columns())  # pyright: ignore[reportArgumentType]


def test_every_weight_of_the_preset_is_a_feature_and_every_feature_has_one() -> None:
    assert set(columns("anything", ["anything goes"])) == set(DEFAULT)


def test_features_of_nothing_are_empty() -> None:
    assert all(column == [] for column in columns("anything", []).values())


@pytest.mark.parametrize("question", ["", "???", "🙂🙂"], ids=["empty", "marks", "emoji"])
def test_a_question_that_says_nothing_prefers_no_words(question: str) -> None:
    found = columns(question, ["we went to the sea", "I like tea"])
    assert found["near"] == [0.0, 0.0]
    assert found["together"] == [0.0, 0.0]


def test_every_feature_stays_between_zero_and_one() -> None:
    texts: list[str | tuple[str, str]] = [
        "Ann: peanut peanut peanut",
        "Bob: When?",
        "Ann: in 1999, peanut " + LONG,
        ("c2", "peanut"),
    ]
    found = columns("When did Ann eat a peanut?", texts, cosines={"0": 0.9, "1": -0.2, "3": 0.1})
    assert all(0.0 <= value <= 1.0 for column in found.values() for value in column)


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    found = columns("dog walrus", ["my dog", "your dog", "a dog", "the walrus"])
    assert found["near"][3] == 1.0
    assert found["near"][0] < 0.8


def test_a_short_turn_is_found_by_what_its_neighbour_asked() -> None:
    found = columns(
        "What colour is the bicycle?",
        ["Which colour is your bicycle?", "Green!", "Nice weather", "Bye"],
        roles=["assistant", "user", "assistant", "user"],
    )
    assert found["near"][0] > found["near"][1] > found["near"][2] > 0
    assert found["covered"][1] == found["covered"][0] > 0
    assert found["answers"][1] > 0 == found["answers"][3]


def test_a_long_turn_borrows_next_to_nothing_from_its_neighbours() -> None:
    texts: list[str | tuple[str, str]] = [LONG + " bicycle", LONG, LONG]
    roles = ["user", "assistant", "user"]
    assert columns("bicycle", texts, roles=roles)["near"][1] < 0.15


def test_turns_of_one_side_only_borrow_less() -> None:
    texts: list[str | tuple[str, str]] = ["the bicycle please", "green", "thanks"]
    both = columns("bicycle", texts, roles=["user", "assistant", "user"])["near"][1]
    assert columns("bicycle", texts)["near"][1] < both


def test_neighbours_are_of_the_same_conversation() -> None:
    found = columns("bicycle", ["a bicycle", ("c2", "green"), ("c2", "red")], roles=["user", "assistant", "user"])
    assert found["near"][1:] == [0.0, 0.0]
    assert found["around"][1:] == [0.0, 0.0]


def test_a_speaker_who_is_named_is_preferred_and_the_name_is_no_word_to_look_for() -> None:
    texts: list[str | tuple[str, str]] = [
        f"{name}: {text}" for text in ("pottery", "yes", "sure") for name in ("Ann", "Bob")
    ]
    found = columns("Where does Ann do pottery?", texts)
    assert found["speaker"] == [1.0, 0.0] * 3
    assert found["near"] == columns("Where does anyone do pottery?", texts)["near"]


def test_vectors_count_for_nothing_where_the_embedder_does_not_know_the_language() -> None:
    cosines = {"0": 0.1, "1": 0.9}
    assert columns("What do you like to eat?", ["a", "b"], cosines=cosines)["alike"][1] == 1.0
    assert columns("Bạn thích ăn gì?", ["a", "b"], cosines=cosines)["alike"] == [0.0, 0.0]
    assert columns("你喜歡吃什麼", ["a", "b"], cosines=cosines)["alike"] == [0.0, 0.0]


def test_without_vectors_nothing_is_alike() -> None:
    assert columns("peanut", ["peanut", "walnut"])["alike"] == [0.0, 0.0]


def test_a_question_for_a_time_prefers_turns_that_tell_one() -> None:
    texts: list[str | tuple[str, str]] = ["we sailed", "we sailed last summer"]
    assert columns("When did we sail?", texts, roles=["user", "assistant"])["time"][0] == 0.0
    assert columns("When did we sail?", texts, roles=["user", "assistant"])["time"][1] > 0
    assert columns("Where did we sail?", texts, roles=["user", "assistant"])["time"] == [0.0, 0.0]


def test_a_date_in_the_question_finds_what_was_said_that_day() -> None:
    days = [datetime(2023, 8, day, tzinfo=UTC) for day in (18, 19, 22)] + [datetime(2023, 12, 1, tzinfo=UTC)]
    found = columns("What did we plan on 19 August, 2023?", ["a", "b", "c", "d"], when=days)
    assert found["dated"] == [0.0, 1.0, 0.5, 0.0]


def test_what_i_said_is_looked_for_in_my_words() -> None:
    roles = ["user", "assistant"]
    assert columns("What is my budget?", ["ten", "twenty"], roles=roles)["user's own words"] == [1.0, 0.0]
    assert columns("What did you recommend?", ["ten", "twenty"], roles=roles)["the other's words"] == [0.0, 1.0]
    assert columns("What is my budget?", ["ten", "twenty"])["user's own words"] == [0.0, 0.0]


def test_words_that_stand_together_count_for_more_than_words_apart() -> None:
    together = LONG + " the red bicycle of my sister " + LONG
    apart = "red " + LONG + " bicycle " + LONG + " sister"
    found = columns("my sister's red bicycle", [together, apart])
    assert found["together"][0] > found["together"][1] > 0


def test_a_number_beside_the_words_counts_where_one_was_asked_for() -> None:
    texts: list[str | tuple[str, str]] = [("a", f"{LONG} the bridge of 1850"), ("b", f"{LONG} the bridge of stone")]
    assert columns("When was the bridge built?", texts)["told there"][0] > 0
    assert columns("When was the bridge built?", texts)["told there"][1] == 0.0
    assert columns("Was the bridge of 1850 built?", texts)["told there"] == [0.0, 0.0]
    assert columns("When was the bridge of 1850 built?", texts)["told there"] == [0.0, 0.0]


def test_a_word_with_its_marks_is_preferred_to_another_with_the_same_letters() -> None:
    texts: list[str | tuple[str, str]] = ["con ma trong nhà", "con má trong nhà"]
    assert columns("má", texts)["as written"] == [0.0, 1.0]
    assert columns("ma", texts)["as written"] == [0.0, 0.0]
