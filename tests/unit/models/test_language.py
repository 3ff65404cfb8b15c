"""Telling languages apart, without a network: by example, by property, and on the open sets where they are at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.language_sets import sets
from tests.unit.growth import assert_growth
from tests.unit.models.language_samples import SENTENCES, TOO_SHORT
from threadkeep.errors import InvalidInput
from threadkeep.models.language import closest, detect
from threadkeep.models.language import detection as cld2
from threadkeep.models.language.latin import folded
from threadkeep.ports.models import CERTAIN

SUPPORTED = ("vi", "pl", "zh-Hant", "zh-Hans", "en")
SAMPLES = [(text, tag) for tag, texts in SENTENCES.items() for text in texts]
OPEN_DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.parametrize(("text", "tag"), SAMPLES)
def test_a_message_is_told_with_certainty(text: str, tag: str) -> None:
    found = detect(text, SUPPORTED)
    assert (found.tag, found.confidence >= CERTAIN) == (tag, True)


@pytest.mark.parametrize(("text", "tag"), [(folded(text), tag) for text, tag in SAMPLES if tag in ("vi", "pl")])
def test_a_message_without_diacritics_is_told_with_certainty(text: str, tag: str) -> None:
    assert text.isascii()
    found = detect(text, SUPPORTED)
    assert (found.tag, found.confidence >= CERTAIN) == (tag, True)


@pytest.mark.parametrize("text", TOO_SHORT)
def test_a_message_too_short_to_tell_is_not_told_with_certainty(text: str) -> None:
    assert detect(text, SUPPORTED).confidence < CERTAIN


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Tôi muốn book phòng deluxe, check-in ngày mai nhé", "vi"),
        ("My name is Nguyễn Văn Hùng and I booked a room yesterday", "en"),
        ("Nazywam się John Smith", "pl"),
        ("我想訂 Grand Hotel 的 deluxe room", "zh-Hant"),
        ("Please explain what 你好 means", "en"),
        ("[REDACTED:EMAIL] to mój adres, proszę o fakturę", "pl"),
        ("https://shop.example/gaming/laptops/best-of-this-year có giao hàng không", "vi"),
    ],
)
def test_of_a_mixed_text_the_language_that_carries_it_counts(text: str, tag: str) -> None:
    assert detect(text, SUPPORTED).tag == tag


SHORT_QUESTIONS = {
    "Is there a sauna?": "en",
    "Do you have wifi?": "en",
    "What time can I check in?": "en",
    "Can I bring my dog?": "en",
    "Do you sell laptops?": "en",
    "ile to kosztuje": "pl",
    "Ich bin in Berlin am Montag": None,
    "Was ist das hier in der Stadt": None,
    "cam on ban": "vi",
    "do toi can no": "vi",
}


@pytest.mark.parametrize(("text", "tag"), SHORT_QUESTIONS.items())
def test_a_short_question_is_told_by_its_little_words_and_chance_meetings_tell_nothing(
    text: str, tag: str | None
) -> None:
    found = detect(text, ("en", "vi", "pl"))
    assert (found.tag if found.confidence >= CERTAIN else None) == tag


def test_the_tag_is_given_in_the_form_that_is_allowed() -> None:
    allowed = ("pl-PL", "en-US", "en-GB", "zh-TW", "zh-CN", "vi-VN")
    assert detect("dziękuję bardzo", allowed).tag == "pl-PL"
    assert detect("thank you very much", allowed).tag == "en-US"
    assert detect("謝謝", allowed).tag == "zh-TW"
    assert detect("谢谢", allowed).tag == "zh-CN"
    assert detect("谢谢", ("en", "zh")).tag == "zh"
    assert detect("谢谢", ("en", "zh-Hant")).tag == "zh-Hant"  # the only Chinese there is


def test_only_an_allowed_language_is_answered_and_one_that_is_none_of_them_with_no_confidence() -> None:
    found = detect("Guten Tag, ich möchte gerne ein Zimmer für zwei Nächte reservieren", SUPPORTED)
    assert found.tag in SUPPORTED
    assert found.confidence < 0.1


def test_a_script_that_no_allowed_language_uses_is_undetermined() -> None:
    assert detect("Здравствуйте", SUPPORTED) == detect("12:30", SUPPORTED)
    assert detect("Здравствуйте", SUPPORTED).tag == "und"


def test_without_an_allowed_set_other_languages_are_named_too() -> None:
    assert detect("こんにちは、予約をお願いします").tag == "ja"
    assert detect("안녕하세요").tag == "ko"
    assert detect("Здравствуйте, я хотел бы забронировать номер").tag == "ru"
    assert detect("Guten Tag, ich möchte gerne ein Zimmer für zwei Nächte reservieren").tag == "de"


def test_of_several_other_languages_the_right_one_is_named() -> None:
    assert detect("Je voudrais réserver une chambre pour deux nuits", ("en", "de", "fr")).tag == "fr"
    assert detect("Ich möchte ein Zimmer für zwei Nächte", ("en", "de")).tag == "de"


def test_everything_but_naming_others_works_without_pycld2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycld2", None)  # what an environment without the extra looks like
    cld2.loaded_cld2.cache_clear()
    try:
        assert [detect(text, SUPPORTED).tag for text, _ in SAMPLES] == [tag for _, tag in SAMPLES]
        assert detect("Ich möchte ein Zimmer für zwei Nächte", ("en", "de")).tag == "de"  # the one that is left
        assert detect("Guten Tag, ich möchte ein Zimmer").confidence < CERTAIN
    finally:
        cld2.loaded_cld2.cache_clear()


@pytest.mark.parametrize("tag", ["", "e", "english please", "vi_VN", "en;q=1", 5])
def test_an_allowed_tag_that_is_none_is_refused(tag: str) -> None:
    with pytest.raises(InvalidInput, match="BCP 47"):
        detect("hello", (tag,))


@given(st.text(max_size=300), st.sampled_from([None, SUPPORTED, ("en", "vi", "pl", "zh"), ("de", "fr", "ja")]))
def test_any_text_gets_an_allowed_tag_and_a_share_of_confidence(text: str, allowed: tuple[str, ...] | None) -> None:
    found = detect(text, allowed)
    assert 0 <= found.confidence <= 1
    assert allowed is None or found.tag in (*allowed, "und")
    assert detect(text, allowed) == found


def test_a_megabyte_costs_no_more_than_its_first_page() -> None:
    for unit in ("a", "a@", "[REDACTED", "http://", "中", "ạ\u0301"):
        page, megabyte = (unit * (length // len(unit)) for length in (2**14, 2**20))
        assert_growth(lambda text: detect(text, SUPPORTED), page, megabyte, at_most=4)


@pytest.mark.slow
def test_the_open_sets_are_told_as_well_as_promised() -> None:
    if not (OPEN_DATA / "language").is_dir():
        pytest.skip(f"the open data sets are not at {OPEN_DATA}")
    accuracy = {
        (one.name, one.gold): fmean(detect(text, one.allowed).tag == one.gold for text in one.texts)
        for one in sets(OPEN_DATA)
    }

    def of(name: str) -> list[float]:
        return [share for (set_name, _), share in accuracy.items() if set_name == name]

    assert fmean(of("single-words")) >= 0.96
    assert fmean(of("word-pairs")) >= 0.99
    assert min(of("sentences")) >= 0.995
    assert min(of("single-words, no diacritics")) >= 0.93
    assert min(of("sentences, no diacritics")) >= 0.995
    assert min(of("Hant or Hans")) >= 0.99


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("pl-PL", "pl"),
        ("en-US", "en"),
        ("en-GB", "en-GB"),
        ("EN", "en"),
        ("vi-VN", "vi"),
        ("zh-TW", "zh-Hant"),
        ("zh-hk", "zh-Hant"),
        ("zh-Hant-TW", "zh-Hant"),
        ("zh-CN", "zh-Hans"),
        ("zh-SG", "zh-Hans"),
        ("zh", "zh-Hant"),
        ("x-unknown", None),
        ("fr-FR", None),
        ("no tag at all", None),
        ("", None),
        (None, None),
    ],
)
def test_a_tag_is_looked_up_by_itself_then_by_its_script_then_by_its_language(
    wanted: str | None, found: str | None
) -> None:
    table = {tag: tag for tag in ("en-GB", "en", "pl", "vi", "zh-Hant", "zh-Hans")}
    assert closest(table, wanted) == found


def test_the_other_script_stands_in_where_it_may_and_a_key_with_a_region_stands_for_its_language() -> None:
    assert closest({"zh-Hant": 1}, "zh-CN") == 1
    assert closest({"zh-Hant": 1}, "zh-CN", same_script=True) is None
    assert closest({"zh-Hant": 1, "zh": 2}, "zh-CN") == 2
    assert closest({"pl-PL": 1}, "pl") == 1
