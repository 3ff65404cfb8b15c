"""Texts that say the same and texts that do not, and digests that tell neither."""

import pytest

from tests.unit.growth import assert_growth
from threadkeep import Scope
from threadkeep.testing.drafts import draft
from threadkeep.wording import ErasedTexts, LookUp, words_of

ME = Scope("shop", "ann")
SAID = "I live in Kraków"
SAME = [
    "i LIVE in KRAKÓW.",
    "  I\tlive\n in   Kraków ",
    "I live in Krak\u0301o\u0301w".replace("k\u0301", "k"),  # decomposed
    "Ｉ ｌｉｖｅ in Kraków",
    "I l\u200biv\u00ade in\u2060 Kra\ufe0fków\u202e",
    "І lіvе іn Krаków",  # Cyrillic і, е, а
    "I live in Κrakόw".replace("ό", "ó"),  # Greek Κ
    "I live in Krakо\u0301w",  # a Cyrillic о with an accent of its own
    "“I live in Kraków!”",
    "**I live in Kraków**",
    "I\n> live\n> in Kraków",
    "I-live_in`Kraków`",
    "I l-\nive in Kra-\n  ków",
    "<b>I live</b> in<br>Kraków™",
    "I [live](https://a.example/b) in ~~Kraków~~",
    "I live in&nbsp;Krak&#243;w",
]
ALLERGY = "I am allergic to peanuts"
ALLERGIES = [
    "You said I am allergic to peanuts—I will remember",
    "I am allergic to peanuts…noted",
    "I am allergic to peanuts,milk and eggs",
    "I am allergic to peanuts.Please note",
    "I am allergic to peanuts!Please note",
    "I am allergic to peanuts(badly)",
    "I am allergic to peanuts/milk",
    "(so:I am allergic to peanuts)",
    "I am 🥜 allergic to peanuts🥜",
    "I am allergic to peanuts's oil",
]
PEANUTS = "peanuts"
GLUED = [
    "allergies:peanuts",
    "|peanuts|milk|",
    '{"allergy":"peanuts"}',
    "#peanuts",
    "[peanuts](x)",
    "<b>peanuts</b>",
    "~~peanuts~~",
    "__peanuts__",
    "peanuts’s",
    "peanuts/milk",
    "peanuts™",
    "«peanuts»",
    "peanuts=yes",
    "peanuts&milk",
    "milk\\peanuts",
]
OTHERS = ["I live in Krakow", "I live in Kraków 2", "I live in Krakówek", "I lived in Kraków", "live in Kraków", ""]


@pytest.mark.parametrize("text", SAME)
def test_case_spaces_look_alikes_and_unseen_characters_make_no_difference(text: str) -> None:
    assert words_of(text).words == words_of(SAID).words


@pytest.mark.parametrize("text", OTHERS)
def test_a_neighbouring_text_is_another(text: str) -> None:
    assert words_of(text).words != words_of(SAID).words


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Hello, I live in Kraków, near the river.", SAID),
        ("Hello\nI live in Kraków\n2 cats", SAID),
        ("I live in Kraków. 2 cats live with me", SAID),
        ("In 2019 I live in Kraków", SAID),
        ("你好，我住在台北，你呢", "我住在台北"),
        ("Tôi sống ở Hà Nội nhé", "tôi sống ở hà nội"),
        ("it was C++ that I like", "c++"),
        ("???", "？？？"),
        ("👍 thanks", "👍"),
        *((text, ALLERGY) for text in ALLERGIES),
        *((f"I know: {text}", PEANUTS) for text in GLUED),
        ("Jestem z portu—zapisane…tak", "z portu"),
        ("Mam uczulenie na orzechy–pamiętaj", "mam uczulenie na orzechy"),
        ("Tôi dị ứng đậu phộng,nhớ nhé", "tôi dị ứng đậu phộng"),
        ("我叫Ann～", "我叫ann"),
        ("I 🏠 live in Kraków 👍", SAID),
        ("my plan is B—noted", "my plan is B"),
        ("my plan is B— noted", "my plan is B"),
        ("it costs US$5", "it costs us $5"),
        ("Anh Hoà khoẻ, chị Thuý cũng thế", "anh hòa khỏe chị thúy"),
        ("QUÝ HOÀN TOÀN", "quý hoàn toàn"),
        ("我今年十歲", "我今年十"),
        ("it's Ann's cat", "its ann"),
        ("it's Ann's cat", "anns cat"),
        ("You like 🥜 a lot", "like 🥜"),
    ],
)
def test_a_phrase_is_found_inside_of_a_message(text: str, phrase: str) -> None:
    assert words_of(text).say(words_of(phrase))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("I live in Kraków 2", SAID),
        ("I live in Krakówek", SAID),
        ("my code is 4417 22", "my code is 4417"),
        ("call 99 12 34", "12 34"),
        ("我住在台北2號", "我住在台北"),
        ("Tôi thích bơ", "Tôi thích bò"),
        ("I like C++", "I like C"),
        ("it costs 5.50", "it costs 5"),
        ("$5", "5"),
        ("it costs 5,50", "it costs 5"),
        ("meet me at 12:30", "meet me at 12"),
        ("it is 5/2", "it is 5"),
        ("it costs 50%", "it costs 50"),
        ("it costs 5 €5", "it costs 5"),
        ("it is -5", "it is 5"),
        ("it costs 5€", "it costs 5"),
        ("I am 51½ now", "I am 51"),
        ("I like C#", "I like C"),
        ("I have an iPhone15", "I have an iPhone"),
        ("I have an iPhone-15", "I have an iPhone"),
        ("ask @ann", "ask ann"),
        ("write to ann@example.com", "write to ann"),
        ("my blood group is A-", "my blood group is A"),
        ("my door is 12#34", "my door is 12"),
        ("I use List<String> here", "I use List here"),
        ("我今年十二歲", "我今年十"),
        ("我今年二十二歲", "十二歲"),
        ("我有5萬", "我有5"),
        ("You like 🥛 a lot", "like 🥜"),
        ("You like milk", "You like 🥜"),
        ("anh hoa khoe", "anh hòa khỏe"),
        ("I eat Aa-\nBb", "I eat AaBb"),
        ("yes", "yes please"),
    ],
)
def test_a_neighbouring_value_is_not_the_phrase(text: str, phrase: str) -> None:
    assert not words_of(text).say(words_of(phrase))


def asked(asking: LookUp[list[str]], tombstones: set[bytes]) -> list[str]:
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(wanted & tombstones)
    except StopIteration as answer:
        return answer.value


def refused(
    texts: ErasedTexts, tombstones: set[bytes], *said: str, scope: Scope = ME, role: str = "assistant"
) -> set[str]:
    drafts = [draft(text, text, role=role) for text in said]
    return set(asked(texts.refused(scope, drafts), tombstones))


def test_an_erased_text_is_refused_from_a_model_and_not_from_the_user() -> None:
    texts = ErasedTexts()
    tombstones = set(texts.buried(ME, [SAID]))
    assert refused(texts, tombstones, *SAME, *OTHERS) == set(SAME)
    assert refused(texts, tombstones, *SAME, role="user") == set()
    assert refused(texts, tombstones, SAID, scope=Scope("shop", "bob")) == set()
    assert refused(texts, tombstones, f"You said: {SAID}") == set()  # the message was erased, not the phrase


def test_a_forgotten_phrase_is_refused_inside_of_what_a_model_writes_unless_it_is_a_word_or_two() -> None:
    texts = ErasedTexts()
    tombstones = set(texts.buried(ME, [], [SAID, "yes please"]))
    told = [f"You said: {SAID}.", "Yes, please!"]
    kept = ["Yes please, come in", f"You said: {SAID} 2", "Kraków"]
    assert refused(texts, tombstones, *told, *kept) == set(told)


def test_tombstones_from_before_there_was_a_key_still_hold() -> None:
    before, keyed, other = ErasedTexts(), ErasedTexts(b"a key of sixteen"), ErasedTexts(b"another key of 16")
    assert refused(keyed, set(before.buried(ME, [SAID])), SAID) == {SAID}
    assert refused(keyed, set(keyed.buried(ME, [SAID])), SAID) == {SAID}
    assert refused(other, set(keyed.buried(ME, [SAID])), SAID) == set()
    assert refused(before, set(keyed.buried(ME, [SAID])), SAID) == set()


def test_a_key_is_shown_nowhere() -> None:
    assert "sixteen" not in repr(ErasedTexts(b"a key of sixteen"))


@pytest.mark.parametrize("text", ["Its Ann’s and I’m fine", "It’s Anns and Im fine", "It&#39;s Ann's and I'm fine"])
def test_an_apostrophe_makes_no_difference(text: str) -> None:
    assert words_of(text).words == words_of("It's Ann's and I'm fine").words


def test_a_model_is_refused_what_it_glues_to_something_or_decorates() -> None:
    texts = ErasedTexts()
    tombstones = set(texts.buried(ME, [], [ALLERGY]))
    assert refused(texts, tombstones, *ALLERGIES) == set(ALLERGIES)


@pytest.mark.parametrize(
    "unit", ["<b ", "a'", "1.", "a-\n", "&#", "](", "🥜", "-", "a@", "「", "十", "oà", "a 🥜", "+$1"]
)
def test_the_work_grows_as_the_text_does(unit: str) -> None:
    def told(text: str) -> bool:
        return words_of(text).say(words_of("a b c"))

    assert_growth(told, unit * 5_000, unit * 20_000, at_most=8)
