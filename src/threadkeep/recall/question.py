"""A question: what its text asks for (terms, dates, a time, a number, a person), and what its conversation lends it.

Words are matched in English, Vietnamese, Polish and Chinese, on folded text. A date is compared with the time of a
turn, so that "what did we plan on 19 August 2023?" finds that evening.

Follow-ups are made whole by rule: "how deadly is it?" takes over the subject of the conversation. Terms of the last
three questions are carried on, fading with each turn, more of those that recur or stand in the last answer; and some of
the first question, which set the topic. How much is carried depends on how little the question says by itself. One that
speaks for itself is left as it is, and so is a short one about something else, unless the caller lends every question
something (`at_least`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import PurePosixPath

from threadkeep.ports.knowledge import Passage
from threadkeep.recall.normalise import (
    BY_LANGUAGE,
    document_terms,
    fold,
    function_words,
    is_vietnamese,
    is_written_without_spaces,
    likely_language,
    query_weights,
    split,
    stem,
    terms_of,
    words_of,
)

_EN = "january|february|march|april|may|june|july|august|september|october|november|december"
_PL = "stycz|lut|mar|kwie|maj|czerw|lip|sierp|wrze|pazdz|listop|grud"  # as they begin, whatever the case
_MONTHS = {name: number for names in (_EN, _PL) for number, name in enumerate(names.split("|"), 1)}
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_DAY}(?: of)? (?P<month>{_EN})\b(?:,? {_YEAR}\b)?",
        rf"\b(?P<month>{_EN}) {_DAY}\b(?!\d)(?:,? {_YEAR}\b)?",
        rf"\b(?P<month>{_EN}),? {_YEAR}\b",
        r"\b(?:in|during|since|of|late|early|mid|this|last) (?P<month>" + _EN + r")\b",
        rf"\b{_DAY} (?P<month>{_PL})\w*(?: {_YEAR}\b)?",
        rf"\b(?P<month>{_PL})\w* {_YEAR}\b",
        rf"\b(?:ngay {_DAY} )?thang (?P<month>\d{{1,2}})\b(?:,? (?:nam )?{_YEAR}\b)?",
        rf"(?:{_YEAR}\s*年\s*)?(?P<month>\d{{1,2}})\s*月(?:\s*{_DAY}\s*[日號号])?",
        rf"\b{_YEAR}-(?P<month>\d{{1,2}})-{_DAY}\b",
        rf"\b{_DAY}[./](?P<month>\d{{1,2}})[./]{_YEAR}\b",
        rf"\b(?:in|during|since|nam|w|roku) {_YEAR}\b",
        rf"{_YEAR}(?:\s*年| roku\b)",
    )
)
_AFTERWARDS = timedelta(days=7)  # in which a message may still be about it
_TOLD_LATER = 0.5


@dataclass(frozen=True, slots=True)
class Named:
    """None where the question does not say."""

    year: int | None
    month: int | None
    day: int | None

    def holds(self, moment: datetime) -> bool:
        return (
            self.year in (None, moment.year) and self.month in (None, moment.month) and self.day in (None, moment.day)
        )


def dates_in(text: str) -> list[Named]:
    folded = fold(text)
    found: list[Named] = []
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(folded):
            if all(match.end() <= start or match.start() >= end for start, end in taken):
                taken.append(match.span())
                found.extend(_named(match))
    return found


def _named(match: re.Match[str]) -> Iterator[Named]:
    groups = match.groupdict()
    year = groups.get("year")
    month = _MONTHS.get(groups["month"]) or int(groups["month"]) if groups.get("month") else None
    day = int(groups["day"]) if groups.get("day") else None
    if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
        yield Named(int(year) if year else None, month, day)


def nearness(moment: datetime, dates: Sequence[Named]) -> float:
    """1 on one of these dates, half in the week after, when messages may still be about it."""
    if any(date.holds(moment) for date in dates):
        return 1.0
    lately = (moment - timedelta(days=days) for days in range(1, _AFTERWARDS.days + 1))
    return _TOLD_LATER if any(date.holds(day) for day in lately for date in dates) else 0.0


_WANTS_TIME = re.compile(
    r"\b(when|what (time|date|day|year|month)|which (day|year|month)|how long ago)\b"
    r"|\b(khi nao|bao gio|luc nao|(ngay|nam|thang|gio) nao|hom nao)\b"
    r"|\b(kiedy|o ktorej|ktorego dnia|w ktorym (roku|miesiacu)|jak dawno)\b"
    r"|什麼時候|什么时候|何時|何时|幾點|几点|哪(一)?(天|年|日|月)|幾月|几月"
)
_WANTS_NUMBER = re.compile(
    r"\b(how (many|much|long|old|often|far|tall)|what (number|age|price))\b"
    r"|\b(bao nhieu|bao lau|may (gio|lan|nguoi|ngay|tuoi)|bao xa)\b"
    r"|\b(ile|ilu|jak (dlugo|czesto|daleko|stary))\b"
    r"|多少|幾|几|多久|多長|多长|多大"
)
_HAS_TIME = re.compile(
    r"\b(yesterday|today|tomorrow|tonight|ago|recently|(last|next|this) (night|week|month|year|summer|winter|spring"
    r"|fall|morning|weekend|mon|tues|wednes|thurs|fri|satur|sun)\w*|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|(mon|tues|wednes|thurs|fri|satur|sun)day|weekend|(year|month|week|day)s?"
    r"|[12]\d{3}|\d{1,2}[/.:-]\d{1,2})\b"
    r"|\b(hom (nay|qua|kia|truoc)|ngay (mai|kia|\d+)|tuan|thang|nam (ngoai|nay|sau|\d+)|sang nay|toi qua|chu nhat"
    r"|thu (hai|ba|tu|nam|sau|bay))\b"
    r"|\b(wczoraj|dzis|dzisiaj|jutro|temu|ostatnio|niedawno|(w )?(zeszl|przyszl)\w+|tydzien|tygodni\w*|miesia\w+|roku"
    r"|lat|styczni\w|lut(y|ego)|marc\w|kwiet\w+|maj[au]?|czerw\w+|lip\w+|sierp\w+|wrzes\w+|pazdzier\w+|listopad\w?|grud\w+"
    r"|poniedzial\w+|wtor\w+|srod\w|czwart\w+|piat\w+|sobot\w|niedziel\w)\b"
    r"|昨|今天|今日|明天|前天|後天|后天|上(個|个)?(週|周|月|星期)|下(個|个)?(週|周|月|星期)|去年|今年|明年|星期|禮拜|礼拜|月|年|天前"
)
_HAS_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice)\b"
    r"|\b(mot|hai|ba|bon|sau|bay|tam|chin|muoi|tram)\b"
    r"|\b(jeden|jedna|dwa|dwie|trzy|cztery|piec|szesc|siedem|osiem|dziewiec|dziesiec|raz)\b"
    r"|[一二三四五六七八九十百千兩两]"
)
_DIGITS = re.compile(r"\d+")


def wants_time(folded: str) -> bool:
    return bool(_WANTS_TIME.search(folded))


def wants_number(folded: str) -> bool:
    return bool(_WANTS_NUMBER.search(folded))


def has_time(folded: str) -> bool:
    return bool(_HAS_TIME.search(folded))


def has_number(folded: str) -> bool:
    return bool(_HAS_NUMBER.search(folded))


def other_numbers(folded: str, than: str) -> bool:
    """Whether it holds a number, in digits, that the other text does not hold."""
    return not set(_DIGITS.findall(folded)) <= set(_DIGITS.findall(than))


_ABOUT_ME = re.compile(
    r"\b(i|me|my|mine|myself|i'm|i've|i'd|i'll)\b|\b(toi|minh|em|chung toi)\b"
    r"|\b(ja|mi|mnie|mna|moj\w{0,3}|moich|moim|mam|jestem|bylem|bylam|mialem|mialam)\b|我"
)
_ABOUT_YOU = re.compile(
    r"\b(you|your|yours)\b|\b(ban)\b|\b(ty|ci|ciebie|tobie|twoj\w{0,3}|powiedziales|mowiles|radziles)\b|你|您"
)
_MADE_FOR_ENGLISH = "wordllama:"


@dataclass(frozen=True)
class Question:
    """`carried` are terms that an earlier turn lends to a follow-up, with the weight they have left.

    `given` are ids of messages that were handed out for the turns before. `asked_in` is the conversation of the
    question, `asked_at` its time; without them nothing is nearer to it than anything else.
    """

    text: str
    language: str | None = None
    carried: Mapping[str, float] = field(default_factory=dict[str, float])
    given: frozenset[str] = frozenset()
    asked_in: str | None = None
    asked_at: datetime | None = None

    @cached_property
    def weights(self) -> dict[str, float]:
        """What to look for. Its own terms count fully."""
        return {**self.carried, **query_weights(self.text, self.language)}

    @cached_property
    def folded(self) -> str:
        return fold(self.text)

    @cached_property
    def dates(self) -> list[Named]:
        return dates_in(self.text)

    @property
    def wants_time(self) -> bool:
        return wants_time(self.folded)

    @property
    def wants_number(self) -> bool:
        return wants_number(self.folded)

    @property
    def is_about_me(self) -> bool:
        return bool(_ABOUT_ME.search(self.folded)) and not self.is_about_you

    @property
    def is_about_you(self) -> bool:
        return bool(_ABOUT_YOU.search(self.folded))

    @cached_property
    def is_in_syllables(self) -> bool:
        """As Vietnamese is written."""
        return any("_" in term for term in self.weights)

    def trust_in(self, model: str) -> float:
        """How far to trust this model's vectors for the question, from 0 to 1. One of no name is the offline one."""
        return self.is_english if not model or model.startswith(_MADE_FOR_ENGLISH) else 1.0

    @cached_property
    def is_english(self) -> float:
        """How sure one can be that it is, from 0 to 1: the offline embedder was made for English."""
        if is_written_without_spaces(self.text):
            return 0.0
        words = words_of(self.text)
        little = {tag: sum(word in known for word in words) for tag, known in BY_LANGUAGE.items()}
        others = max(little["pl"], little["vi"])
        if little["en"] != others:
            return float(little["en"] > others)
        return 0.5 if self.text.isascii() else 0.0


_A_LATER_WORD = re.compile(r"(?<=[\w,;:] )\w{2,}")
_AMONG_CHINESE = re.compile("[A-Za-z]{2,}")
_DAY_OR_MONTH = re.compile(
    "(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June|July|August|(Septem|Octo|Novem|Decem)ber"
)
# Whose, or who: of one named before. Whom points elsewhere: "did Anna call him?".
_STANDS_FOR_A_NAME = {
    "en": re.compile(r"\b(its|their|theirs|his|her(?= \w)|hers|he|she|they)\b"),
    "pl": re.compile(r"\b(jego|jej|ich|on|ona|oni)\b"),
}
_NOW = re.compile(r"\bthis (season|year|month|week|weekend|morning|afternoon|evening|century|decade|time)\b")
# Folded, by language: "on" is he in Polish.
_POINTS_BACK = {
    "en": re.compile(
        r"\b(it|its|they|them|their|theirs|he|him|his|she|her|hers|this|these|those|ones|latter|former|both|others?"
        r"|else|another)\b|\bthat('s)?\s*(\?|$)|\bthat (is|was|one|kind|means?|works?|happen|have|has|make)\b"
        r"|\b(what|how|why|about|like|of|for|from|do|does|with) that\b|\bthere\s*[?.]"
    ),
    "vi": re.compile(r"\b(no|ho|chung|(anh|co|ong|ba) ay|(cai|dieu|viec|nguoi) (nay|do|kia)|o do)\b"),
    "pl": re.compile(
        r"\b(on|ona|ono|oni|one|jego|jej|ich|jemu|im|nim|nia|nich|to|tym|tego|temu|tej|tych|ten|ta|tamten|tamta|tam|inn[aey])\b"
    ),
    "zh": re.compile("他|她|它|牠|這|这|那|其|該|该|此"),
}
_GOES_ON = {
    "en": re.compile(
        r"^\s*(and|but|or|also|so|then|what about|how about|why|tell me more|what else|how so|really|for example"
        r"|like what)\b"
    ),
    "vi": re.compile(r"^\s*(va|con|the|vay|tai sao|vi sao|sao|ke them|noi them)\b"),
    "pl": re.compile(r"^\s*(a|i|oraz|ale|czyli|dlaczego|czemu|opowiedz|co jeszcze|wiec)\b"),
    "zh": re.compile(r"^\s*(那麼|那么|還有|还有|所以|為什麼|为什么|為何|为何|然後|然后)|呢[?？]?\s*$"),
}
_THEN = re.compile(r"^\s*那(?![個个是些裡里邊边種种樣样])")  # not that one, but another: "那植牙呢？"
_IN_SYLLABLES = ("vi", "zh")  # two of them make a word
_REMEMBERED = 3  # questions
_FADES = 0.3
_TOPIC = 0.2  # of the first question
_IN_THE_ANSWER = 1.5
_RECURS = 0.5
_FEW, _MANY = 4, 12  # terms: a question of as many may miss something, or misses nothing


@dataclass(frozen=True, slots=True)
class Asked:
    """An earlier question of the same conversation, and the text it was answered from."""

    question: str
    answer: str = ""


def enriched(
    text: str,
    earlier: Sequence[Asked],
    language: str | None = None,
    given: Collection[str] = (),
    *,
    at_least: float = 0.0,
) -> Question:
    """Return the question with the terms that its conversation lends, of which none is its own.

    `given` are ids of what was handed out before: a follow-up seldom needs it again. `at_least` is the share that is
    lent whatever the question says by itself.
    """
    share = max(at_least, missing(text, earlier, language)) if earlier else 0.0
    return Question(text, language, _carried(text, earlier, language, share) if share else {}, frozenset(given))


def language_of_conversation(text: str, earlier: Sequence[str]) -> str | None:
    """Return the language of a question: its own little words', or where they leave it open, of those before it.

    "A gwarancja?" has one little word, which is English as well. None where no word of the conversation shows it.
    """
    for asked in (text, " ".join([*earlier, text])):
        if is_written_without_spaces(asked):
            return "zh"
        words = words_of(asked)
        if not asked.isascii() and is_vietnamese(asked, words):
            return "vi"
        little = sorted((sum(word in known for word in words), tag) for tag, known in BY_LANGUAGE.items())
        if little[-1][0] > little[-2][0]:
            return little[-1][1]
    return None


def kept_to_its_subject(question: Question, passages: Sequence[Passage], last: str | None) -> Question:
    """Return the question without what another document lends it, where it turns to a document by itself.

    `last` is the document that answered before. "And the Aurora?" takes over the question about the Borealis, its
    price, as far as the Aurora has one; the name of the Borealis stays behind.
    """
    if not question.carried:
        return question
    documents: dict[str, _Document] = {}
    for one in passages:
        if one.document_id not in documents:
            documents[one.document_id] = _Document(one, question.language)
        documents[one.document_id].contents.append(one.content)
    before = documents.get(last) if last else None
    if not (meant := _turned_to(question, list(documents.values()), before)):
        return question
    held = frozenset[str]().union(*(one.terms for one in meant))
    return replace(question, carried={term: weight for term, weight in question.carried.items() if term in held})


class _Document:
    """Terms of its title and file name, and of all that was found of it."""

    def __init__(self, found: Passage, language: str | None) -> None:
        self.name = frozenset(terms_of(f"{found.title} {PurePosixPath(found.document_id).stem}", language))
        self.contents: list[str] = []

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.name.union(*map(document_terms, self.contents))


def _turned_to(question: Question, documents: Sequence[_Document], last: _Document | None) -> Sequence[_Document]:
    """Documents that the question names with a capital, or in words of their title; else those that hold all its terms,
    of which the last holds none. What the last one speaks of too, as of a warranty, names no other.
    """
    spoken = _spoken(question.text, question.language)
    text = _THEN.sub("", question.text)
    if _points_back(text, spoken):
        return ()
    named, known = (last.name, last.terms) if last else (frozenset[str](), frozenset[str]())
    if names := set(terms_of(" ".join(name[0] for name in _names(text, spoken)), spoken)) - named:
        return _most(documents, lambda one: names & one.name) or _most(
            documents, lambda one: (names - known) & one.terms
        )
    said = _GOES_ON[spoken].sub(" ", fold(text))
    weights = query_weights(said, question.language)
    telling = {term for term, weight in weights.items() if weight == 1.0}
    subject = set(_subject(said, spoken, weights)) - known
    whole = [one for one in documents if telling <= one.terms] if subject else []
    alone = whole if len(telling) > 1 and telling.isdisjoint(known) else ()
    return _most(whole, lambda one: subject & one.name) or alone


def _most(documents: Sequence[_Document], shared: Callable[[_Document], Collection[str]]) -> Sequence[_Document]:
    counts = [len(shared(one)) for one in documents]
    most = max(counts, default=0)
    return [one for one, count in zip(documents, counts, strict=True) if count == most] if most else ()


def missing(text: str, earlier: Sequence[Asked] = (), language: str | None = None) -> float:
    """How much of a question is left unsaid, from 0 to 1.

    One that points back, or continues, leaves something unsaid; a short one only where it speaks of what was spoken of.
    """
    folded = fold(text)
    spoken = _spoken(text, language)
    weights = query_weights(text, language)
    telling = [term for term, weight in weights.items() if weight == 1.0]
    says = len(telling) / 2 if spoken in _IN_SYLLABLES else len(telling)
    back, on = _points_back(text, spoken), bool(_GOES_ON[spoken].search(folded))
    if not (back or on or (says <= _FEW and _spoken_of(_subject(text, spoken, weights), earlier, language))):
        return 0.0
    unsaid = 0.15 + 0.4 * back + 0.3 * on + 0.5 * max(0.0, 1 - says / 6)
    return min(1.0, unsaid) * min(1.0, max(0.0, (_MANY - says) / (_MANY - 5)))


def stands_alone(text: str, language: str | None = None) -> bool:
    """Whether nothing in its wording points back, or continues an earlier question."""
    spoken = _spoken(text, language)
    return not (_points_back(text, spoken) or _GOES_ON[spoken].search(fold(text)))


def _points_back(text: str, spoken: str) -> bool:
    """What stands for a name that the question itself gives does not: "when did Tesla leave his country?"."""
    at = min((word.start() for word in _names(text, spoken)), default=len(text))
    before, after = fold(text[:at]), fold(text[at:])
    if spoken in _STANDS_FOR_A_NAME:
        after = _STANDS_FOR_A_NAME[spoken].sub(" ", after)
    return bool(_POINTS_BACK[spoken].search(_NOW.sub(" ", f"{before} {after}")))


def _names(text: str, spoken: str) -> list[re.Match[str]]:
    """Words with a capital of their own, not the sentence's or the shift key's; among Chinese ones, Latin ones."""
    if spoken == "zh":
        return list(_AMONG_CHINESE.finditer(text))
    words = list(_A_LATER_WORD.finditer(text))
    named = [word for word in words if word[0][0].isupper() and not _DAY_OR_MONTH.fullmatch(word[0])]
    return named if len(named) < len(words) else []


def _subject(text: str, spoken: str, weights: Mapping[str, float]) -> list[str]:
    """Terms that would have been heard before if the question continues the conversation: of its names, if it has any.

    A Vietnamese name is made of syllables that are common by themselves; there, and in Chinese, pairs are used.
    """
    named = [term for name in _names(text, spoken) for term in terms_of(name[0], spoken)] if spoken != "vi" else []
    pairs = [term for term in weights if "_" in term or (len(term) == 2 and not term.isascii())]
    if spoken not in _IN_SYLLABLES:
        pairs = []
    return named or pairs or [term for term, weight in weights.items() if weight == 1.0]


def _spoken_of(words: Sequence[str], earlier: Sequence[Asked], language: str | None) -> bool:
    """Whether the last answer, or a question remembered, holds any of it; or nothing in it could show that."""
    if not words:
        return True
    before = set(terms_of(earlier[-1].answer, language)) if earlier else set[str]()
    for asked in earlier[-_REMEMBERED:]:
        before.update(terms_of(asked.question, language))
    return not before.isdisjoint(words)


def _spoken(text: str, language: str | None) -> str:
    if is_written_without_spaces(text):
        return "zh"
    words = words_of(text)
    return "vi" if not text.isascii() and is_vietnamese(text, words) else likely_language(words, language)


def _carried(text: str, earlier: Sequence[Asked], language: str | None, share: float) -> dict[str, float]:
    own = query_weights(text, language)
    topics = [_topic(asked.question, language_of_conversation(asked.question, ()) or language) for asked in earlier]
    recurring = Counter(term for topic in topics for term in topic)
    answered = frozenset(terms_of(earlier[-1].answer, language))
    fading = [(topics[0], _TOPIC), *((topic, _FADES**age) for age, topic in enumerate(reversed(topics[-_REMEMBERED:])))]
    carried: dict[str, float] = {}
    for topic, left in fading:
        for term in topic.keys() - own.keys():
            weight = topic[term]
            factor = (_IN_THE_ANSWER if term in answered else 1.0) * (1 + _RECURS * (recurring[term] - 1))
            carried[term] = max(carried.get(term, 0.0), min(1.0, weight * left * factor) * share)
    return carried


def _topic(asked: str, language: str | None) -> dict[str, float]:
    """Return what an earlier question speaks of: nothing where it has little words only ("and how much is that?")."""
    words, characters = split(asked)
    little = function_words(words, language)
    stems = {stem(word) for word in words} - {stem(word) for word in words if word not in little}
    stems.update(one for one in characters if little.issuperset(one))
    return {term: weight for term, weight in query_weights(asked, language).items() if term not in stems}
