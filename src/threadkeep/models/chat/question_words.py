"""Which words of a question name its subject, which only make it a question, and which name a common attribute.

"When is the gym open?" is about a gym: a sentence on the opening hours of something else does not answer it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from threadkeep.models.language import closest
from threadkeep.recall.normalise import (
    BY_LANGUAGE,
    fold,
    function_words,
    is_syllable,
    is_written_without_spaces,
    stem,
    terms_of,
    words_of,
)

# Folded, as terms are. They bear on nothing, and would make what does a smaller share of the question.
_ASKING = {
    "vi": frozenset({"the", "nao", "sao", "gi", "dau", "may", "bao", "nhieu", "khong", "cho", "hoi", "xin", "shop"}),
    "zh-Hant": frozenset({"多", "少", "錢", "幾", "嗎", "幾點", "請問"}),
    "zh-Hans": frozenset({"多", "少", "钱", "几", "吗", "几点", "请问"}),
}
# Hours and prices, which many things have; the house itself, where all of them are; wanting. Vietnamese in pairs.
_OF_MANY = {
    "en": "open opens opening close closes closing closed hour hours time times cost costs price prices cheapest"
    " cheaper"
    " free charge charges fee fees",
    "pl": "otwarty otwarta otwarte otwarcia czynny czynna czynne godzina godzinie godziny zamykany zamykana"
    " kosztuje kosztują koszt cena cenie ceny najtańszy najtańsza bezpłatny bezpłatna bezpłatne darmowy darmowa darmowe"
    " płatny płatna płatne",
    "vi": "gia gio luc mo_cua dong_cua thoi_gian gia_ca gia_tien nhieu_tien re_nhat khach_san cua_hang"
    " toi_muon toi_can cho_toi mo dong mien_phi mat_tien ton_tien tinh_tien mat_phi thu_phi tinh_phi",
    "zh-Hant": "開放時間 營業時間 開門 關門 打烊 價格 價錢 費用 最便宜 飯店 酒店 免費 收費",
    "zh-Hans": "开放时间 营业时间 开门 关门 打烊 价格 价钱 费用 最便宜 饭店 酒店 免费 收费",
}
# Units that prices are given by; alone in a question they mean that long ("and for two nights?").
_BY_TIME = {
    "en": "night nights day days",
    "pl": "noc noce nocy doba dobę doby dzień dni",
    "vi": "dem mot_dem moi_dem ban_dem qua_dem mot_ngay moi_ngay",
    "zh-Hant": "一晚 每晚 晚上 每天 一天",
    "zh-Hans": "一晚 每晚 晚上 每天 一天",
}
# Alone in a question, these refer to the subject before it; beside other words they may be the subject themselves.
_OF_WHAT_WENT_BEFORE = {"en": "stock available", "pl": "dostępny dostępna dostępne", "vi": "con_hang het_hang"}


# In text without spaces, question words would form pairs with their neighbours.
_ASKING_IN_CHINESE = re.compile(
    r"[請请][問问]|多少[錢钱]?|[怎][麼么]算|在?哪[裡里兒儿]|可以|(?:[幾几][點点][鐘钟]?|什[麼么][時时]候|何[時时])"
    r"(?:[開开]始|[結结]束|[開开關关][門门])?|[嗎吗呢]|^那"
)


_AMOUNT = re.compile(
    r"\b\d+[.,]\d{1,2}\b(?! ?(?:gb|tb|ghz|inch|w)\b)|\b\d+ ?(?:million|mln|triệu|trieu|củ|cu|萬|万)(?!\w)",
    re.IGNORECASE,
)


def without_question_words(question: str) -> str:
    """The question without question words and amounts: "1.5 million" must not match a 1 or a 5."""
    return _ASKING_IN_CHINESE.sub(" ", _AMOUNT.sub(" ", question))


def _terms(words: str) -> frozenset[str]:
    whole = words.split()
    return frozenset(one for one in whole if "_" in one).union(terms_of(" ".join(w for w in whole if "_" not in w)))


# Everyday words for what documents call otherwise; few, and only such as hardly mean anything else.
_ALSO_CALLED = {
    "en": {"accommodation": "room", "lodging": "room"},
    "pl": {"nocleg": "pokój noc", "noclegi": "pokój noc"},
}
_OTHER_NAMES = {
    tag: {stem(fold(word)): terms_of(names) for word, names in words.items()} for tag, words in _ALSO_CALLED.items()
}
_LITTLE = BY_LANGUAGE["vi"]
_LITTLE_VIETNAMESE = _LITTLE | _ASKING["vi"] | {"tien", "gia", "gio", "luc", "vay", "a"}
_ATTRIBUTES = {tag: _terms(words) for tag, words in _OF_MANY.items()}
_TIMES = {tag: _terms(words) for tag, words in _BY_TIME.items()}
_CARRIED_ON = {tag: _terms(f"{_OF_MANY[tag]} {words}") for tag, words in _OF_WHAT_WENT_BEFORE.items()}


# Beside a subject, they name nothing.
_LIGHT_WORDS = {
    "en": "one ones each piece within inside tell know like get take need want say come would"
    " two three four five six seven eight ten",
    "pl": "sztuka sztukę jeden jedna jedno chodzi wyjdzie wyszło trzeba"
    " dwa dwie trzy cztery pięć sześć siedem dziesięć",
    "vi": "mot cai con chiec bo may minh em anh chi ban shop the thi dang luc hom tien gia gio vay a bao nhieu"
    " het",  # "hết nhiêu": what it comes to
}
_LIGHT = {tag: frozenset(stem(fold(word)) for word in words.split()) for tag, words in _LIGHT_WORDS.items()}


def is_light(term: str, language: str | None) -> bool:
    """Or a single character of what is written without spaces, a single digit, or a pair of what is light."""
    if is_written_without_spaces(term):
        return len(term) == 1
    light = closest(_LIGHT, language) or frozenset[str]()
    return (len(term) == 1 and term.isdigit()) or all(light & {half, stem(half)} for half in term.split("_"))


def is_question_word(term: str, language: str | None) -> bool:
    """Whether the term is a question word. A pair goes by its last syllable: the first may be half of a word."""
    asking = closest(_ASKING, language) or frozenset[str]()
    last = term[-1] if is_written_without_spaces(term) else term.split("_")[-1]
    return term in asking or last in asking


def names_no_subject(question: str) -> bool:
    """Whether the question names no subject of its own: "how much?"."""
    rest = without_question_words(question)
    if any(map(is_written_without_spaces, rest)) or not any(map(str.isalnum, question)):
        return False
    return all(word in _LITTLE_VIETNAMESE for word in words_of(rest))


def little_terms(question: str, language: str | None) -> frozenset[str]:
    """The question's function words, stemmed."""
    words = words_of(question)
    return frozenset(stem(word) for word in function_words(words, language).intersection(words))


def other_names(terms: Iterable[str], language: str | None) -> list[str]:
    """What else the things may be called that the terms name."""
    known = closest(_OTHER_NAMES, language) or {}
    return [name for term in terms for name in known.get(term, ()) if "_" not in name]


# Before or behind a noun, such a word says which one is meant.
_NOT_WHICH = re.compile("per|for|rent|book|reserve|have|having|get|use|using|take|nice|good|hotel|normal|usual|average")
_POLISH_ADJECTIVE = re.compile(r"\w{3,}(?:n|sk|ow|ck|t|w|zn)(?:y|a|e|ego|ej|i|iego|iej)")


def is_of_another_kind(question: str, language: str | None, named: Collection[str], known: Collection[str]) -> bool:
    """Whether it wants a kind of a thing that documents do not have: a triple room, where they know single ones.

    `named` are the terms of it that they hold, `known` all of theirs.
    """
    words, little = words_of(question), function_words(words_of(question), language)

    def tells_which(word: str) -> bool:
        term = stem(word)
        attributes = closest(_ATTRIBUTES, language) or frozenset[str]()
        unknown = term not in known and word not in little and term not in attributes and not is_light(term, language)
        return unknown and word.isalpha() and not _NOT_WHICH.fullmatch(word)

    base = (language or "").split("-")[0]
    for before, word in pairwise(words):
        if base == "en" and stem(word) in named and tells_which(before):
            return True
        pair = ((before, word), (word, before)) if base == "pl" else ()
        if any(stem(noun) in named and _POLISH_ADJECTIVE.fullmatch(one) and tells_which(one) for noun, one in pair):
            return True
    return False


# By language and name: what documents call a thing that users call so.
AlsoCalled = Mapping[str, Mapping[str, Sequence[str]]]


def names_for(question: str, language: str | None, called: AlsoCalled) -> dict[str, Sequence[str]]:
    """What a question names in other words than documents, and what they call it; without marks it is met without."""
    plain = question.isascii()
    said = fold(question) if plain else question.casefold()
    table = closest(called, language) or {}
    return {word: names for word, names in table.items() if _says(said, fold(word) if plain else word.casefold())}


def _says(text: str, word: str) -> bool:
    return (
        word in text if is_written_without_spaces(word) else bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))
    )


def attributes_in(terms: Collection[str], language: str | None, is_carried: bool = False) -> frozenset[str]:
    """Those of a question's terms that many subjects have, with the syllables they are made of.

    `is_carried` says that the question has a subject from the one before.
    """
    table = (
        (closest(_CARRIED_ON, language) if is_carried else None) or closest(_ATTRIBUTES, language) or frozenset[str]()
    )
    found = table.intersection(terms)
    syllables = {stem(half) for one in found for half in one.split("_")}
    between = {one for one in terms if "_" in one and syllables.issuperset(map(stem, one.split("_")))}
    return found | between | syllables.intersection(terms)


def times_in(terms: Iterable[str], language: str | None) -> frozenset[str]:
    """Those of a question's terms that say for how long."""
    return (closest(_TIMES, language) or frozenset[str]()).intersection(terms)


def subjects_in(
    terms: Iterable[str], attributes: Collection[str], language: str | None, foreign: Collection[str] = ()
) -> frozenset[str]:
    """Those of which a sentence must hold one to bear on the question; none where it names no subject.

    Single syllables and characters stand in everything: where words are written as two of them, only such pairs, and
    what is `foreign` to that, count.
    """
    rest = frozenset(terms).difference(attributes)
    pairs = {one for one in rest if is_written_without_spaces(one) and len(one) == 2}
    if language is None or language.split("-")[0].lower() == "vi":
        pairs |= {one for one in rest if "_" in one}
    said_in_two = any(not _LITTLE.intersection(one.split("_")) for one in pairs)
    written_in_two = any(map(is_written_without_spaces, rest))
    return rest & pairs.union(foreign) if said_in_two or written_in_two else rest


def foreign_terms(question: str) -> frozenset[str]:
    """Of the words in it that are no Vietnamese syllables: names, numbers, borrowed ones."""
    return frozenset(stem(word) for word in words_of(question) if not is_syllable(word))


_MODEL = re.compile(r"(?<![\w.,-])\d{3,}(?![\w.,])")  # "the 5060", without its name
_NUMBERED = re.compile(r"([^\W\d_]+)[ \-\u2011](\d+)(?!\w)")


_OF_A_MODEL = re.compile(rf"{_MODEL.pattern}|\b[A-Z]{{2,}}-\d")


def names_a_model(text: str) -> bool:
    return bool(_OF_A_MODEL.search(text))


def numbers_named(question: str, texts: Iterable[str]) -> frozenset[str]:
    """The numbers that distinguish things of a kind: "RTX 5090", where the texts know an "RTX 5060".

    Only after what the texts write with a capital: "from 7" and "for 36 months" are no names.
    """
    asked = {(fold(name), number) for name, number in _NUMBERED.findall(question)}
    alone = set(_MODEL.findall(question))
    if not asked and not alone:
        return frozenset()
    known = {(fold(name), number) for text in texts for name, number in _NUMBERED.findall(text) if name != name.lower()}
    names, numbers = {name for name, _ in known}, {number for _, number in known}
    return frozenset(number for name, number in asked if name in names) | (alone & numbers)
