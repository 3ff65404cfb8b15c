"""Sentences end where a reader of English, Vietnamese, Polish or Chinese would say they do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.growth import assert_growth
from threadkeep.models.sentences import sentences

# Each written with `|` where a sentence ends.
SHOWN = [
    "Hello there! |How are you? |Fine.",
    "Mr. and Mrs. Smith met Dr. Who at St. Pancras. |They left.",
    "It costs 3.50 zł, i.e. nothing, e.g. for me. |Good.",
    "J. K. Rowling wrote it in the U.S. in 1997. |We read it.",
    'She said: "No." |Then she left.',
    '"Really?" she asked. |Yes.',
    "See https://example.com/a.b?c=d.e for more. |Then call v1.2.3.",
    "i like cats. |my dog is big",
    "I waited... and waited. |Then… |Nothing happened.",
    "We met at 5 p.m. on Monday. |It was after 5 p.m. |Nobody came.",
    "No. |I said no. 5, not no. 6.",
    "The car is red. |It is fast.",
    "Tôi sống ở TP. HCM. |Còn bạn?",
    "Th.S. Lan và PGS. TS. Minh dạy ở Q. 1. |Họ rất vui.",
    "Giá 3.500.000 đ. |Rẻ quá!",
    "Có táo, cam, v.v. và chuối. |Hết.",
    "Mieszkam przy ul. Długiej 5. |Blisko.",
    "Np. dr hab. Kowalski przyszedł o godz. 15.30 na al. Jana. |Wyszedł.",
    "Kupił chleb, masło itd. |Potem poszedł.",
    "Kupił chleb itd. i poszedł. |Koniec.",
    "Urodził się 5. maja w 1990 r. w Łodzi. |Mieszka tam.",
    "Było to w 1990. |Potem wyjechał.",
    "我對花生過敏。|真的！|你呢？|好；|再見",
    "他說「真的嗎？」|然後走了……|再也沒回來。",
    "價格是3.5元。|OK. |謝謝",
    "Wait!!! |What?! |OK",
]


@pytest.mark.parametrize("shown", SHOWN)
def test_a_text_is_split_where_its_sentences_end(shown: str) -> None:
    assert sentences(shown.replace("|", "")) == [part.strip() for part in shown.split("|")]


def test_bullets_numbers_and_paragraphs_stand_by_themselves() -> None:
    text = "To buy:\n- milk\n* two eggs\n1. First thing\n2) Second thing\n\nA new paragraph"
    assert sentences(text) == [
        "To buy:",
        "- milk",
        "* two eggs",
        "1. First thing",
        "2) Second thing",
        "A new paragraph",
    ]


def test_a_sentence_may_run_over_the_end_of_a_line() -> None:
    assert sentences("This sentence is\nwrapped by a mailer.\nThis one is not") == [
        "This sentence is\nwrapped by a mailer.",
        "This one is not",
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t"])
def test_an_empty_text_has_no_sentences(text: str) -> None:
    assert sentences(text) == []


@settings(deadline=None)
@given(st.text() | st.text(alphabet='aB. \n!?…。」"5-'))
def test_nothing_is_lost_and_nothing_added(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", [".", ". ", "a. ", "\n", " \n", "…", "。", '"', "x", "Mr. ", "1. ", "a.b."])
def test_a_megabyte_of_one_thing_is_split_in_linear_time(unit: str) -> None:
    short, long = (unit * (length // len(unit)) for length in (100_000, 1_000_000))
    assert_growth(sentences, short, long, at_most=40)
