"""A summary is a few of the text's own sentences, in their order, never more than was asked for."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.growth import assert_growth
from threadkeep.models.sentences import sentences as split
from threadkeep.models.summary import summarise

FOUR_LANGUAGES = {
    "en": (
        "Hi there! I booked a room in Kraków for 12 May. The room has a view of the square. By the way, the weather is "
        "lovely today. I am allergic to peanuts, so the hotel kitchen must know. The hotel asked for a deposit of 200 "
        "euros for the room. Thanks a lot!"
    ),
    "vi": (
        "Chào bạn! Tôi đã đặt phòng khách sạn ở TP. Huế ngày 12 tháng 5. Phòng nhìn ra sông Hương. Hôm nay trời đẹp. "
        "Tôi bị dị ứng đậu phộng nên bếp của khách sạn phải biết. Khách sạn yêu cầu đặt cọc 200 nghìn cho phòng. "
        "Cảm ơn!"
    ),
    "pl": (
        "Cześć! Zarezerwowałem pokój w hotelu w Krakowie na 12 maja. Pokój ma widok na rynek. Dziś jest ładna pogoda. "
        "Jestem uczulony na orzeszki, więc kuchnia hotelu musi o tym wiedzieć. Hotel prosi o 200 zł zaliczki za pokój. "
        "Dziękuję bardzo!"
    ),
    "zh-Hant": (
        "你好！我在花蓮的飯店訂了5月12日的房間。房間可以看到海。今天天氣很好。我對花生過敏，所以飯店的廚房必須知道。"
        "飯店要求房間付200元訂金。謝謝你！"
    ),
}
every_language = pytest.mark.parametrize("text", FOUR_LANGUAGES.values(), ids=FOUR_LANGUAGES.keys())


@every_language
@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_a_summary_is_made_of_the_texts_own_sentences_in_their_order(text: str, wanted: int) -> None:
    own = split(text)
    chosen = [own.index(sentence) for sentence in split(summarise(text, wanted))]
    assert len(chosen) == wanted
    assert chosen == sorted(chosen)


@every_language
def test_a_summary_tells_what_the_text_is_about_and_leaves_the_courtesies_out(text: str) -> None:
    own = split(text)
    summary = summarise(text, 3)
    assert "12" in summary  # the booking
    assert own[0] not in summary
    assert own[-1] not in summary


def test_a_summary_does_not_say_the_same_thing_twice() -> None:
    text = "The red train leaves at noon. The red train leaves at noon today. Bring a warm coat for the mountain hut."
    assert summarise(text, 2).endswith("Bring a warm coat for the mountain hut.")


@pytest.mark.parametrize("text", ["", "One sentence only.", "một câu", "一句話。", "Two. Sentences."])
def test_a_text_that_is_short_enough_comes_back_as_it_is(text: str) -> None:
    assert summarise(text) == text


@pytest.mark.parametrize("language", ["en", "pl-PL", "vi", "zh-Hant", "xx"])
@every_language
def test_a_language_that_was_guessed_wrong_does_no_harm(text: str, language: str) -> None:
    summary = split(summarise(text, 3, language))
    assert len(summary) == 3
    assert set(summary) <= set(split(text))


def test_sentences_can_be_compared_by_an_embedder() -> None:
    asked: list[Sequence[str]] = []

    def about_the_deposit(found: Sequence[str]) -> list[list[float]]:
        asked.append(found)
        apart = [[float(i == j) for j in range(len(found))] for i in range(len(found))]
        return [
            [1.0] * len(found) if "deposit" in sentence else own for sentence, own in zip(found, apart, strict=True)
        ]

    assert "deposit" in summarise(FOUR_LANGUAGES["en"], 1, embed=about_the_deposit)
    assert asked == [split(FOUR_LANGUAGES["en"])]


@settings(deadline=None)
@given(st.text(), st.integers(-1, 5), st.integers(1, 200))
def test_a_summary_is_never_longer_than_the_limit_and_never_invents(text: str, wanted: int, longest: int) -> None:
    summary = summarise(text, wanted, longest=longest)
    assert len(summary) <= longest
    assert set(summary) - {" ", "…"} <= set(text)
    assert len(split(summary)) <= max(1, wanted) or summary.endswith("…")


def test_one_sentence_that_is_too_long_is_cut_at_a_word() -> None:
    summary = summarise("word " * 500, longest=100)
    assert summary.endswith("word…")
    assert len(summary) <= 100


@pytest.mark.parametrize(
    "unit", ["word ", "Một câu nữa. ", "a. b! ", "。", "x", "\n- item 5 here", "花生過敏。", "..."]
)
def test_a_megabyte_is_summarised_in_linear_time(unit: str) -> None:
    short, long = (unit * (length // len(unit)) for length in (100_000, 1_000_000))
    assert len(summarise(long)) <= 600
    assert_growth(summarise, short, long, at_most=40)
