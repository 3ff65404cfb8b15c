"""Two spellings of the same thing give the same terms, whatever the language and whether or not it is known."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.growth import assert_growth
from threadkeep.recall.normalise import fold, indexed_terms, query_terms, terms_of

FOLDED = [
    ("Đà Nẵng", "da nang"),
    ("Łódź", "lodz"),
    ("Zażółć gęślą JAŹŃ", "zazolc gesla jazn"),
    ("ＡＢＣ１２３", "abc123"),
    ("ﬁne", "fine"),
    ("Straße", "strasse"),
    ("pea\u00adnut pea\u200bnut", "peanut peanut"),
    ("花生，各", "花生,各"),
]


@pytest.mark.parametrize(("text", "plain"), FOLDED)
def test_case_marks_and_compatibility_forms_are_folded(text: str, plain: str) -> None:
    assert fold(text) == plain


@settings(deadline=None)
@given(st.text())
def test_composed_and_decomposed_spellings_fold_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


def folded_as_a_whole(text: str) -> str:
    """What `fold` does character by character, said in the slow and plain way."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    bare = re.sub("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]+", "", apart)
    alone = str.maketrans({"đ": "d", "ł": "l", "ø": "o", "ð": "d", "ı": "i"})
    return unicodedata.normalize("NFC", bare).translate(alone)


@settings(deadline=None)
@given(st.text(alphabet=st.characters() | st.sampled_from("aeođĐŁßİﬁｶﾞ\u0301\u0323\u031b\u1100\u1161\u11a8\u3099")))
def test_folding_by_character_is_folding_the_whole(text: str) -> None:
    assert fold(text) == folded_as_a_whole(text)


SAME_TERM = [
    ("peanut", "peanuts"),
    ("allergic", "allergies"),
    ("run", "running"),
    ("house", "houses"),
    ("glass", "glasses"),
    ("restauracja", "restauracjami"),
    ("książka", "książkach"),
    ("orzeszek", "ORZESZEK"),
    ("uczulony", "uczulonego"),
]


@pytest.mark.parametrize(("word", "other"), SAME_TERM)
def test_forms_of_a_word_share_their_term(word: str, other: str) -> None:
    assert terms_of(word) == terms_of(other)


@pytest.mark.parametrize(("word", "other"), [("peanut", "peasant"), ("kot", "kos"), ("bus", "but"), ("ăn", "ăng")])
def test_different_words_keep_different_terms(word: str, other: str) -> None:
    assert set(terms_of(word)).isdisjoint(terms_of(other))


@pytest.mark.parametrize("code", ["AB1234567", "2024", "b2b", "7f3a9c1d2e3f4a5b"])
def test_what_holds_digits_is_kept_whole(code: str) -> None:
    assert terms_of(code) == [code.lower()]


def test_chinese_gives_characters_and_pairs() -> None:
    assert terms_of("花生醬") == ["花", "生", "醬", "花生", "生醬"]


def test_chinese_next_to_latin_letters_and_digits_is_told_apart() -> None:
    assert set(terms_of("我買了iPhone15手機")) >= {"iphone15", "手機", "買了"}


def test_vietnamese_gives_syllables_and_pairs() -> None:
    assert terms_of("dị ứng đậu phộng") == ["di", "ung", "dau", "phong", "di_ung", "ung_dau", "dau_phong"]


@pytest.mark.parametrize(
    "text", ["di ung dau phong", "DỊ ỨNG ĐẬU PHỘNG", unicodedata.normalize("NFD", "dị ứng đậu phộng")]
)
def test_vietnamese_without_marks_in_capitals_or_decomposed_gives_the_same_terms(text: str) -> None:
    assert terms_of(text) == terms_of("dị ứng đậu phộng")


@pytest.mark.parametrize(
    "text",
    [
        "I am allergic to peanuts and so is my brother, who works for an airline",
        "Jestem uczulony na orzeszki ziemne i na gluten",
        "We had phở and bánh mì at a small place in the old town before the flight back home",
    ],
)
def test_other_languages_are_not_paired(text: str) -> None:
    assert not [term for term in terms_of(text) if "_" in term]


@pytest.mark.parametrize("language", [None, "vi", "pl-PL", "en-US", "zh-Hant", "xx", ""])
@pytest.mark.parametrize(
    "text", ["dị ứng đậu phộng", "peanut allergies", "uczulony na orzeszki", "對花生過敏 since 2019"]
)
def test_a_wrong_guess_at_the_language_loses_no_shared_word(text: str, language: str | None) -> None:
    assert set(terms_of(text)) <= set(terms_of(text, language))


def test_a_question_is_looked_for_without_its_little_words() -> None:
    assert query_terms("What is she allergic to?") == terms_of("allergic")
    assert query_terms("Na co jest uczulona moja siostra?") == terms_of("uczulona siostra")
    assert "的" not in query_terms("她的過敏")


@pytest.mark.parametrize("question", ["to be or not to be", "what is it?", "co to jest", "là gì", "的"])
def test_a_question_of_little_words_only_is_looked_for_as_it_is(question: str) -> None:
    assert set(query_terms(question)) & set(terms_of(question))


def test_a_vietnamese_word_is_not_taken_for_an_english_little_one() -> None:
    assert "an" in query_terms("ăn gì ở Huế")  # to eat; folded, it looks like the English article


@pytest.mark.parametrize("text", ["", " ", "🙂🙂", "___", "\ud800", "…!?"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert terms_of(text) == query_terms(text) == []
    assert indexed_terms(text) == ""


@settings(deadline=None)
@given(st.text())
def test_no_term_holds_a_space_and_each_is_indexed_once(text: str) -> None:
    indexed = indexed_terms(text).split(" ") if indexed_terms(text) else []
    assert sorted(indexed) == sorted(set(terms_of(text)))


@settings(deadline=None)
@given(st.text(), st.text())
def test_a_question_looks_only_for_terms_that_a_message_of_the_same_words_has_or_for_pairs(
    head: str, tail: str
) -> None:
    text = f"{head} peanut {tail}"
    assert {term for term in query_terms(text) if "_" not in term} <= set(terms_of(text))


@pytest.mark.parametrize("unit", ["a", "a1", "花", "ế", "_", " ", "a ", "ba ", "\u0301"])
def test_a_megabyte_of_one_thing_is_normalised_in_linear_time(unit: str) -> None:
    short, long = (unit * (length // len(unit)) for length in (100_000, 1_000_000))
    assert max(map(len, terms_of(long)), default=0) <= 64
    assert_growth(terms_of, short, long, at_most=40)
