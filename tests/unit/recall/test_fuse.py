"""Hits: in order, with their reasons, the same whatever order the index handed the turns in."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.recall.said import evidence_of
from threadkeep.recall.normalise import stem
from threadkeep.recall.question import Question
from threadkeep.recall.score import fused

TEXTS: list[str | tuple[str, str]] = [
    "I am allergic to peanuts",
    "Noted, no peanuts then",
    "We could go to the sea",
    ("c2", "What about walnuts?"),
    ("c2", "Peanuts are worse"),
]


def test_the_best_turn_comes_first_and_no_more_than_asked_for() -> None:
    question = Question("Am I allergic to peanuts?")
    hits = fused(question, evidence_of(question, TEXTS), k=2)
    assert hits[0].content == "I am allergic to peanuts"
    assert len(hits) == 2
    assert hits[0].score >= hits[1].score


def test_the_order_does_not_depend_on_how_the_index_hands_turns_over() -> None:
    question = Question("peanuts and walnuts")
    evidence = evidence_of(question, TEXTS)
    mixed = list(evidence.turns)
    random.Random(3).shuffle(mixed)
    assert fused(question, evidence, 5) == fused(question, replace(evidence, turns=mixed), 5)


def test_equal_turns_come_in_the_order_of_their_ids() -> None:
    question = Question("peanuts")
    hits = fused(question, evidence_of(question, [("b", "peanuts"), ("a", "peanuts"), ("c", "peanuts")]), 3)
    assert [hit.message_id for hit in hits] == ["0", "1", "2"]


def test_a_turn_that_nothing_speaks_for_is_no_hit() -> None:
    question = Question("quantum chromodynamics")
    assert fused(question, evidence_of(question, TEXTS), k=10) == ()


def test_a_hit_tells_its_terms_and_what_spoke_for_it() -> None:
    question = Question("Am I allergic to peanuts?")
    best = fused(question, evidence_of(question, TEXTS), k=1)[0]
    assert best.why["terms"] == sorted({stem("allergic"), stem("peanuts")})
    assert best.why["because"]
    assert all(isinstance(part, float) for part in best.why["because"].values())


def test_a_hit_tells_its_rank_in_each_leg_that_speaks_for_it() -> None:
    question = Question("Am I allergic to peanuts?")
    first, *others = fused(question, evidence_of(question, TEXTS, cosines={"0": 0.5, "2": 0.6}), k=5)
    assert first.why["ranks"] == {"words": 1, "surroundings": 1, "vectors": 2}
    sea = next(hit for hit in others if hit.message_id == "2")
    assert sea.why["ranks"]["vectors"] == 1
    assert "words" not in sea.why["ranks"]


def test_vectors_speak_for_a_turn_only_where_their_model_knows_the_language() -> None:
    question = Question("Bạn thích ăn gì?")
    evidence = evidence_of(question, TEXTS, cosines={"2": 0.9})
    assert fused(question, evidence, 5) == ()
    assert fused(question, replace(evidence, model="wordllama:l2_supercat_256"), 5) == ()
    assert [hit.message_id for hit in fused(question, replace(evidence, model="ollama:bge-m3"), 5)] == ["2"]


def test_what_was_given_before_stands_back() -> None:
    texts: list[str | tuple[str, str]] = [("a", "peanuts are legumes"), ("b", "peanuts are grown in Georgia")]
    fresh = Question("peanuts legumes")
    again = Question("peanuts legumes", given=frozenset({"0"}))
    before = fused(fresh, evidence_of(fresh, texts), 2)
    after = fused(again, evidence_of(again, texts), 2)
    assert after[-1].score < before[0].score


NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_of_what_answers_alike_the_fresher_stands_first() -> None:
    question = Question("Where is the spare key?", asked_at=NOW)
    when = [NOW - timedelta(days=2), NOW - timedelta(days=200), NOW - timedelta(days=20)]
    texts: list[str | tuple[str, str]] = [(name, "the spare key is in the shed") for name in "abc"]
    hits = fused(question, evidence_of(question, texts, when=when), 3)
    assert [hit.message_id for hit in hits] == ["0", "2", "1"]
    assert hits[0].score > hits[1].score > hits[2].score > 0


def test_where_all_was_said_at_once_freshness_changes_nothing() -> None:
    asked, timeless = Question("Am I allergic to peanuts?", asked_at=NOW), Question("Am I allergic to peanuts?")
    when = [NOW] * len(TEXTS)
    assert fused(asked, evidence_of(asked, TEXTS, when=when), 5) == fused(
        timeless, evidence_of(timeless, TEXTS, when=when), 5
    )


def test_of_what_answers_alike_that_of_the_same_conversation_stands_first() -> None:
    texts: list[str | tuple[str, str]] = [(name, "the spare key is in the shed") for name in "abc"]
    question = Question("Where is the spare key?", asked_in="b")
    hits = fused(question, evidence_of(question, texts), 3)
    assert hits[0].conversation == "b"
    assert hits[0].score > hits[1].score == hits[2].score


def test_neither_lifts_what_says_less_of_what_was_asked() -> None:
    question = Question("Where is the spare key of the shed?", asked_in="b", asked_at=NOW)
    texts: list[str | tuple[str, str]] = [
        ("a", "the spare key of the shed hangs behind the door"),
        ("b", "the shed needs paint"),
        ("b", "good morning"),
    ]
    when = [NOW - timedelta(days=400), NOW, NOW]
    assert fused(question, evidence_of(question, texts, when=when), 3)[0].message_id == "0"
