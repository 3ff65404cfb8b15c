"""The best stretch of a text, and who speaks."""

from __future__ import annotations

from threadkeep.recall.speakers import speakers
from threadkeep.recall.stem import stem
from threadkeep.recall.stretch import share_in_one_stretch

WEIGHTS = {"red": 1.0, stem("bicycle"): 3.0}
FILLER = "word " * 60


def test_all_in_one_stretch_is_one() -> None:
    assert share_in_one_stretch(f"{FILLER} a red bicycle {FILLER}", WEIGHTS) == 1.0


def test_far_apart_only_the_heavier_counts() -> None:
    assert share_in_one_stretch(f"red {FILLER} bicycle", WEIGHTS) == 0.75


def test_nothing_asked_or_nothing_found_is_nothing() -> None:
    assert share_in_one_stretch("a red bicycle", {}) == 0.0
    assert share_in_one_stretch("", WEIGHTS) == 0.0


def test_chinese_pairs_are_found_in_order() -> None:
    assert share_in_one_stretch("我對花生過敏", {"花生": 1.0, "生花": 1.0}) == 0.5


def test_repeats_do_not_count_twice() -> None:
    assert share_in_one_stretch("red red red", WEIGHTS) == 0.25


def test_a_name_that_several_turns_begin_with_is_a_speaker() -> None:
    texts = ["Ann: hi", "Bob: hello", "Ann: so", "Note: buy milk", "Ann: bye", "Bob: bye", "Bob: oh"]
    found = speakers(texts)
    assert found[0] == found[2] == {"ann"}
    assert found[3] == frozenset()


def test_a_time_of_day_is_no_name() -> None:
    assert speakers(["10: 30", "10: 40", "10: 50"]) == [frozenset()] * 3
