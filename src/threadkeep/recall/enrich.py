"""Follow-up questions, made whole by rule: "how deadly is it?" takes over the subject of the conversation.

Terms of the last three questions are carried on, fading with each turn, more of those that recur or stand in the last
answer; and some of the first question, which set the topic. How much is carried depends on how little the question
says by itself. One that speaks for itself is left as it is, and so is a short one about something else, unless the
caller lends every question something (`at_least`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from threadkeep.recall.question import Question

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
    pairs = [term for term in weights if _is_a_pair(term)] if spoken in _IN_SYLLABLES else []
    return named or pairs or [term for term, weight in weights.items() if weight == 1.0]


def _is_a_pair(term: str) -> bool:
    return "_" in term or (len(term) == 2 and not term.isascii())


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
            told = (_IN_THE_ANSWER if term in answered else 1.0) * (1 + _RECURS * (recurring[term] - 1))
            carried[term] = max(carried.get(term, 0.0), min(1.0, weight * left * told) * share)
    return carried


def _topic(asked: str, language: str | None) -> dict[str, float]:
    """Return what an earlier question speaks of: nothing where it has little words only ("and how much is that?")."""
    words, characters = split(asked)
    little = function_words(words, language)
    stems = {stem(word) for word in words} - {stem(word) for word in words if word not in little}
    stems.update(one for one in characters if little.issuperset(one))
    return {term: weight for term, weight in query_weights(asked, language).items() if term not in stems}
