"""The best stretch of a text, and who speaks."""

from __future__ import annotations

from threadkeep.recall.speakers import speakers
from threadkeep.recall.stem import stem
from threadkeep.recall.stretch import Phrase

BICYCLE = Phrase("bicycle red", {"red": 1.0, stem("bicycle"): 3.0})
FILLER = "word " * 60


def test_all_in_one_stretch_and_side_by_side_is_one() -> None:
    assert BICYCLE.share_in_one_stretch(f"{FILLER} a bicycle, red {FILLER}") == 1.0


def test_not_side_by_side_is_less() -> None:
    assert BICYCLE.share_in_one_stretch(f"{FILLER} red is my Bicycle {FILLER}") == 0.8


def test_far_apart_only_the_heavier_counts() -> None:
    assert BICYCLE.share_in_one_stretch(f"red {FILLER} bicycles") == 0.6


def test_nothing_asked_or_nothing_found_is_nothing() -> None:
    assert Phrase("", {}).share_in_one_stretch("a red bicycle") == 0.0
    assert Phrase("a red bicycle", {}).share_in_one_stretch("a red bicycle") == 0.0
    assert BICYCLE.share_in_one_stretch("") == 0.0


def test_a_longer_word_that_begins_alike_is_another() -> None:
    assert BICYCLE.share_in_one_stretch("the redundant clerk hired bicyclists") == 0.6  # as its stem has it
    assert BICYCLE.share_in_one_stretch("redundant, hired") == 0.0


def test_chinese_pairs_are_found_in_order() -> None:
    assert Phrase("花生生花", {"花生": 1.0, "生花": 1.0}).share_in_one_stretch("我對花生過敏") == 0.5


def test_chinese_beside_other_letters_is_found() -> None:
    asked = Phrase("iPhone手機", {stem("iphone"): 1.0, "手機": 1.0})
    assert asked.share_in_one_stretch("我的iPhone手機壞了") == 1.0


def test_repeats_do_not_count_twice() -> None:
    assert BICYCLE.share_in_one_stretch("red red red") == 0.2


def test_a_name_that_several_turns_begin_with_is_a_speaker() -> None:
    texts = ["Ann: hi", "Bob: hello", "Ann: so", "Note: buy milk", "Ann: bye", "Bob: bye", "Bob: oh"]
    found = speakers(texts)
    assert found[0] == found[2] == {"ann"}
    assert found[3] == frozenset()


def test_a_time_of_day_is_no_name() -> None:
    assert speakers(["10: 30", "10: 40", "10: 50"]) == [frozenset()] * 3
