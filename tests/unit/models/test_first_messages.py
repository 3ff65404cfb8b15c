"""What the detector settles of first messages: 200 judged ones, and our own kinds of short and ambiguous ones."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from threadkeep.models.language import detect
from threadkeep.models.language import detection as cld2
from threadkeep.ports.models import CERTAIN

JUDGED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data/language/first_messages.jsonl").read_text("utf-8").splitlines()
]
SHOP, HOTEL = ("vi", "en"), ("pl", "en", "vi", "zh-Hant")
NO_SPACES = "zh-Hant"
AS_LONG = 6  # characters of Chinese that are about three words


def settled(text: str, allowed: tuple[str, ...] | None = None) -> str | None:
    found = detect(text, allowed)
    return found.tag if found.confidence >= CERTAIN else None


def is_long(text: str, language: str) -> bool:
    return len(text) > AS_LONG if language == NO_SPACES else len(text.split()) > 3


@pytest.fixture(params=[True, False], ids=["pycld2", "no pycld2"])
def with_cld2(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    if not request.param:
        monkeypatch.setitem(sys.modules, "pycld2", None)
    cld2.loaded_cld2.cache_clear()
    yield request.param
    cld2.loaded_cld2.cache_clear()


@pytest.mark.parametrize("allowed", [None, SHOP, HOTEL], ids=["any", "shop", "hotel"])
def test_no_first_message_is_settled_wrongly(allowed: tuple[str, ...] | None, with_cld2: bool) -> None:
    assert len(JUDGED) == 200
    found = [(one["text"], one["language"], settled(one["text"], allowed)) for one in JUDGED]
    assert [one for one in found if one[2] not in (None, one[1])] == []


def test_most_first_messages_of_more_than_three_words_are_settled() -> None:
    long = [one for one in JUDGED if is_long(one["text"], one["language"])]
    told = Counter(one["language"] for one in long if settled(one["text"]) == one["language"])
    of = Counter(one["language"] for one in long)
    assert sum(told.values()) / len(long) >= 0.9, {tag: f"{told[tag]} of {n}" for tag, n in of.items()}
    assert all(told[tag] == of[tag] for tag in ("en", "vi", "pl"))


# By us, as were the classes they stand for; none is in the judged set.
SHORT_ENGLISH = """
Hi! When can I check in?|Can I return a CPU?|Can I get a GPU?|How hot can a CPU get?|I can't go in|Hi, can I buy a PC?
I am at the bar|Can I ban ads?|Hi, an RTX 5060?|How can I|Can I go in now?|Is the gym open?|do u have a pool|got a PSU?
Any SSD on sale?|tea or coffee?|in a bit|hi there|can you help|my tv is broken|How big is the bed?|May I come in?
""".strip().replace("\n", "|")


@pytest.mark.parametrize("allowed", [None, SHOP, HOTEL], ids=["any", "shop", "hotel"])
@pytest.mark.parametrize("text", SHORT_ENGLISH.split("|"))
def test_short_english_is_never_taken_for_vietnamese(text: str, allowed: tuple[str, ...] | None) -> None:
    assert settled(text, allowed) in (None, "en")


@pytest.mark.parametrize(
    "text", ["con phong khong", "cho toi xem gia", "bao hanh may nam", "RTX5060 gia bao nhieu vay", "toi can mua CPU"]
)
def test_vietnamese_without_its_marks_is_still_told(text: str) -> None:
    assert settled(text, SHOP) == settled(text) == "vi"


@pytest.mark.parametrize("text", ["hay wifi", "bom dia", "Wenn du dich", "neue Batterie", "chci pokoj", "kein Problem"])
def test_a_few_words_of_another_language_are_none_of_ours(text: str) -> None:
    assert settled(text, HOTEL) is None
    assert settled(text) not in HOTEL


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Чи є у вас паркінг?", "uk"),
        ("Ви приймаєте картки?", "uk"),
        ("Вы принимаете карты Visa?", "ru"),
        ("Имате ли свободни стаи за утре вечер", "bg"),
        ("Да ли имате слободну собу са љубимцима", "sr"),
        ("Бос бөлме бар ма, бағасы қанша?", "kk"),
        ("آیا پارکینگ دارید؟ چقدر است", "fa"),
        ("هل لديكم موقف سيارات مجاني؟", "ar"),
        ("дорого", None),
        ("коли доставка", None),
        ("добар дан", None),
    ],
)
def test_languages_of_one_script_are_told_by_their_letters_or_not_at_all(text: str, tag: str | None) -> None:
    assert settled(text) == tag


def test_of_a_script_of_many_languages_the_allowed_one_is_taken_where_its_letters_allow_it() -> None:
    assert settled("дорого", ("ru", "en")) == "ru"
    assert settled("Чи є у вас паркінг?", ("ru", "en")) is None


@pytest.mark.parametrize(
    ("text", "tag"), [("Добрий день", "uk"), ("Добрый день", "ru"), ("де вокзал", "uk"), ("добар дан", "sr")]
)
def test_everyday_words_make_a_guess_among_languages_of_one_script(text: str, tag: str) -> None:
    assert detect(text).tag == tag


def test_latin_words_do_not_outweigh_as_many_of_another_script() -> None:
    assert detect("check in几点").tag == "zh-Hans"
    assert detect("What does 你好 mean?").tag == "en"


def test_acronyms_and_model_numbers_are_of_no_language() -> None:
    assert detect("RTX5060 và DDR5").tag == detect("và").tag
    assert detect("請問 RTX 4070 Ti 有嗎").confidence == detect("請問 Ti 有嗎").confidence
    assert settled("CAN I CHECK IN AT NOON PLEASE") == "en"  # who shouts means words
