"""Which turns are read, told from postings."""

from __future__ import annotations

from threadkeep.index.terms import worth_reading
from threadkeep.ports.index import Position, Posting, Shape, Statistics
from threadkeep.recall.candidates import promising, with_neighbours

CHAT = {"c1": Shape(turns=50, terms=500)}
ESSAYS = {"c1": Shape(turns=50, terms=20_000)}


def posting(term: str, seq: int, count: int = 1) -> Posting:
    return Posting(term, Position("c1", seq), count, length=10)


def statistics(**holding: int) -> Statistics:
    return Statistics(turns=1_000, mean_length=10.0, holding=holding)


def test_rare_terms_are_read_first_and_common_ones_left_out() -> None:
    assert worth_reading(statistics(the=900, walrus=3, dog=50), most=100) == ["walrus", "dog"]


def test_the_rarest_term_is_read_however_common_it_is() -> None:
    assert worth_reading(statistics(the=900, a=950), most=100) == ["the"]


def test_terms_that_nobody_said_are_not_read() -> None:
    assert worth_reading(statistics(walrus=0), most=100) == []


def test_a_turn_beside_the_words_is_a_candidate_in_a_chat() -> None:
    found = promising([posting("walrus", 7)], statistics(walrus=1), CHAT, {"walrus": 1.0})
    assert found[0] == Position("c1", 7)
    assert {Position("c1", 6), Position("c1", 8), Position("c1", 11)} <= set(found)


def test_a_turn_that_holds_the_words_comes_before_all_neighbours() -> None:
    postings = [posting("walrus", 7), posting("walrus", 30)]
    found = promising(postings, statistics(walrus=2), CHAT, {"walrus": 1.0}, most=2)
    assert found == [Position("c1", 30), Position("c1", 7)]


def test_between_long_texts_neighbours_come_last() -> None:
    postings = [posting("walrus", 7), posting("dog", 30)]
    found = promising(postings, statistics(walrus=1, dog=100), ESSAYS, {"walrus": 1.0, "dog": 1.0})
    assert found[:2] == [Position("c1", 7), Position("c1", 30)]


def test_no_more_candidates_than_asked_for() -> None:
    postings = [posting("dog", seq) for seq in range(1, 400)]
    assert len(promising(postings, statistics(dog=399), CHAT, {"dog": 1.0}, most=10)) == 10


def test_what_is_read_reaches_around_the_candidates_but_not_before_the_first_turn() -> None:
    assert with_neighbours([Position("c1", 2)], reach=2) == {Position("c1", seq) for seq in (1, 2, 3, 4)}
