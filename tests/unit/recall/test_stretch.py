"""The best stretch of a text, and who speaks."""

from __future__ import annotations

import re

from threadkeep.recall.normalise import CJK, stem
from threadkeep.recall.score import Phrase, speakers

BICYCLE = Phrase("bicycle red", {"red": 1.0, stem("bicycle"): 3.0})
FILLER = "word " * 60


def test_all_in_one_stretch_and_side_by_side_is_one() -> None:
    assert BICYCLE.best_stretch(f"{FILLER} a bicycle, red {FILLER}").share == 1.0


def test_not_side_by_side_is_less() -> None:
    assert BICYCLE.best_stretch(f"{FILLER} red is my Bicycle {FILLER}").share == 0.8


def test_far_apart_only_the_heavier_counts() -> None:
    assert BICYCLE.best_stretch(f"red {FILLER} bicycles").share == 0.6


def test_nothing_asked_or_nothing_found_is_nothing() -> None:
    assert Phrase("", {}).best_stretch("a red bicycle").share == 0.0
    assert Phrase("a red bicycle", {}).best_stretch("a red bicycle").share == 0.0
    assert BICYCLE.best_stretch("").share == 0.0


def test_a_longer_word_that_begins_alike_is_another() -> None:
    assert BICYCLE.best_stretch("the redundant clerk hired bicyclists").share == 0.6  # as its stem has it
    assert BICYCLE.best_stretch("redundant, hired").share == 0.0


def test_chinese_pairs_are_found_in_order() -> None:
    assert Phrase("花生生花", {"花生": 1.0, "生花": 1.0}).best_stretch("我對花生過敏").share == 0.5


def test_chinese_beside_other_letters_is_found() -> None:
    asked = Phrase("iPhone手機", {stem("iphone"): 1.0, "手機": 1.0})
    assert asked.best_stretch("我的iPhone手機壞了").share == 1.0


def test_words_end_where_chinese_begins_though_only_words_were_asked_for() -> None:
    assert BICYCLE.best_stretch("我的red bicycle壞了").share == 0.8


def test_the_many_characters_of_chinese_cost_nothing_where_none_are_asked_for() -> None:
    plain = Phrase("bicycle red", {"red": 1.0})
    plain.best_stretch("a red “bicycle”, zażółć, 花生")
    assert not any(CJK in pattern.pattern for pattern in vars(plain).values() if isinstance(pattern, re.Pattern))


def test_a_stretch_is_told_with_what_stands_beside_it() -> None:
    said = BICYCLE.best_stretch(f"{FILLER} sold in 1999: one red bicycle for 20 crowns {FILLER}").text
    assert "1999" in said
    assert "20 crowns" in said
    assert len(said) < 300


def test_repeats_do_not_count_twice() -> None:
    assert BICYCLE.best_stretch("red red red").share == 0.2


def test_a_name_that_several_turns_begin_with_is_a_speaker() -> None:
    texts = ["Ann: hi", "Bob: hello", "Ann: so", "Note: buy milk", "Ann: bye", "Bob: bye", "Bob: oh"]
    found = speakers(texts)
    assert found[0] == found[2] == {"ann"}
    assert found[3] == frozenset()


def test_a_time_of_day_is_no_name() -> None:
    assert speakers(["10: 30", "10: 40", "10: 50"]) == [frozenset()] * 3
