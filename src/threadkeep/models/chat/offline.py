"""An answer without a model: the sentences, of what was found and of what the user said, that bear on the question.

It quotes and never invents. Where nothing bears on the question the reply is empty, and its caller says so.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.models.chat.question_words import (
    attributes_in,
    foreign_terms,
    little_terms,
    numbers_named,
    only_asks,
    other_names,
    subjects_in,
    without_asking,
)
from threadkeep.models.language import closest, detect
from threadkeep.models.sentences import sentences
from threadkeep.ports.chat import ChatReply, ChatRequest, Said
from threadkeep.ports.language import CERTAIN
from threadkeep.recall.normalise import document_terms, is_written_without_spaces, joined_terms, query_weights

_MOST_SENTENCES = 3
_ENOUGH = 0.25  # of the question's weight, or two words of it: less is chance
_ENOUGH_WITHOUT_SPACES = 0.4  # characters of one word meet those of another more often
_SHORT = 4  # characters: one word, of which most must be held
_ENOUGH_OF_A_WORD = 0.65
_WORDS = 2
_ROUNDING = 1e-9
_OTHERWISE_CALLED = 0.7
_HEADING = 0.5  # what its words count beside those of a sentence
_MARKED = re.compile(r"(?:#{1,6} .+\n)*#{1,6} (.+)")  # as chunks of documents hold them, the last one nearest
_LONGEST = 600
_CARRIED = 0.3  # what the question before lends to one that says little
_SAYS_LITTLE = 3  # terms


class _Sentence(NamedTuple):
    place: int
    text: str
    terms: frozenset[str]
    of_user: bool
    about: frozenset[str]  # the terms of its heading


class _Question(NamedTuple):
    weights: dict[str, float]
    own: frozenset[str]  # of its terms those that are not from the question before
    attributes: frozenset[str]
    subjects: frozenset[str]


@dataclass(frozen=True, slots=True)
class OfflineModel:
    """`you_said` comes before a quotation of the user, by language."""

    you_said: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = "offline"

    @property
    def generates(self) -> bool:
        return False

    async def reply(self, request: ChatRequest) -> ChatReply:
        said = [one for one in request.messages if isinstance(one, Said)]
        asked = [one.content for one in said if one.role == "user"]
        if not asked:
            return ChatReply("")
        candidates = _candidates(request, asked[:-1])
        scored = _scored(candidates, _question(asked, request.language))
        named = numbers_named(asked[-1], (one.text for one in candidates))
        if named:
            scored = [(score, one) for score, one in scored if one.terms & named]
        you_said = closest(self.you_said, request.language) or "You said earlier:"
        return ChatReply(_quoted(_chosen(_in_its_language(scored, request.language)), you_said))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        reply = await self.reply(request)
        if reply.text:
            yield reply.text
        yield reply

    async def close(self) -> None:
        """Nothing is open."""


def _quoted(chosen: Sequence[_Sentence], you_said: str) -> str:
    documents = " ".join(one.text for one in chosen if not one.of_user)
    own = " ".join(one.text for one in chosen if one.of_user)
    return documents or (f"{you_said} “{own}”" if own else "")


def _is_word(term: str) -> bool:
    return "_" not in term


def _question(asked: Sequence[str], language: str | None) -> _Question:
    own = _weights(asked[-1], language)
    carried: dict[str, float] = {}
    telling = {term: own[term] for term in own.keys() - little_terms(asked[-1], language)}
    if sum(map(_is_word, telling)) <= _SAYS_LITTLE and len(asked) > 1:
        before = _weights(asked[-2], language)
        answered = frozenset[str]() if telling else attributes_in(before, language)  # this one asks for another
        carried = {term: _CARRIED * weight for term, weight in before.items() if term not in answered}
    weights = carried | telling if carried else own
    told = {term: weight for term, weight in weights.items() if not only_asks(term, language)} or weights
    attributes = attributes_in(told, language, goes_on=bool(carried))
    foreign = foreign_terms(" ".join(asked[-2:]))
    return _Question(told, frozenset(own), attributes, subjects_in(told, attributes, language, foreign))


def _weights(question: str, language: str | None) -> dict[str, float]:
    question = without_asking(question)
    said = dict.fromkeys(joined_terms(question), 1.0) | query_weights(question, language)
    return dict.fromkeys(other_names(said, language), _OTHERWISE_CALLED) | said


def _candidates(request: ChatRequest, earlier: Sequence[str]) -> list[_Sentence]:
    texts = [(one.text, one.kind == "memory", one.heading) for one in request.found]
    texts += [(text, True, "") for text in reversed(earlier)]
    split = [(part, of_user, about) for text, of_user, under in texts for part, about in _parts(text, of_user, under)]
    return [
        _Sentence(place, part, frozenset(document_terms(part)), of_user, frozenset(document_terms(about)))
        for place, (part, of_user, about) in enumerate(split)
    ]


def _parts(text: str, of_user: bool, heading: str) -> list[tuple[str, str]]:
    return [(part, "") for part in sentences(text)] if of_user else _under(text, heading)


def _under(text: str, heading: str) -> list[tuple[str, str]]:
    """Each sentence with the heading right above its paragraph. A heading is quoted only if nothing stands under it."""
    nearest = heading.rpartition("›")[2].strip()
    told: list[tuple[str, str]] = []
    for paragraph in text.split("\n\n"):
        headings = _MARKED.fullmatch(paragraph)
        if headings:
            told += [(nearest, "")] if nearest else []
            nearest = headings[1]
        else:
            told += [(part, nearest) for part in sentences(paragraph)]
            nearest = ""
    return [*told, (nearest, "")] if nearest else told


def _scored(candidates: Sequence[_Sentence], question: _Question) -> list[tuple[float, _Sentence]]:
    """Those that bear on the question, best first by the share of it that they hold."""
    weights = question.weights
    holding = {term: sum(term in one.terms or term in one.about for one in candidates) for term in weights}
    worth = {term: weight / (1 + holding[term]) ** 0.5 for term, weight in weights.items() if holding[term]}
    scored = [
        (_worth(one.terms, worth) + _HEADING * _worth(one.about - one.terms, worth), one)
        for one in candidates
        if _bears_on(one, question) and not one.text.endswith(("?", "？"))
    ]
    return sorted(scored, key=lambda row: (-row[0], row[1].place))


def _worth(terms: Set[str], worth: Mapping[str, float]) -> float:
    return sum(worth[term] for term in terms & worth.keys())


def _bears_on(one: _Sentence, question: _Question) -> bool:
    """It holds something of the subject, and enough of what is said about it.

    What the user said before is no answer by being what the question carries on.
    """
    said = one.terms | one.about
    if (question.subjects and not said & question.subjects) or (one.of_user and not said & question.own):
        return False
    weights = question.weights
    counted = weights.keys() - question.attributes if question.subjects else weights.keys()
    held = said & counted
    words = sum(_is_word(term) and (len(term) > 1 or not is_written_without_spaces(term)) for term in held)
    share = sum(weights[term] for term in held) / (sum(weights[term] for term in counted) or 1.0)
    return words >= _WORDS or share + _ROUNDING >= _enough(counted)


def _enough(counted: Collection[str]) -> float:
    characters = sum(len(term) == 1 and is_written_without_spaces(term) for term in counted)
    if characters <= _SHORT:
        return _ENOUGH_OF_A_WORD if characters else _ENOUGH
    return _ENOUGH_WITHOUT_SPACES


def _in_its_language(scored: Sequence[tuple[float, _Sentence]], language: str | None) -> list[tuple[float, _Sentence]]:
    """Documents often say the same in several languages. Others are quoted only where there is nothing else."""
    own = [(score, one) for score, one in scored if not _is_foreign(one.text, language)]
    return own or list(scored)


def _is_foreign(text: str, language: str | None) -> bool:
    found = detect(text)
    return bool(language) and found.confidence >= CERTAIN and _base(found.tag) != _base(str(language))


def _base(tag: str) -> str:
    return tag.split("-")[0].lower()


def _chosen(scored: Sequence[tuple[float, _Sentence]]) -> list[_Sentence]:
    """The best and what comes near it, in the order they stand in."""
    best = scored[0][0] if scored else 0.0
    kept: list[_Sentence] = []
    room = _LONGEST
    for score, one in scored:
        if score < best * 0.6 or len(kept) == _MOST_SENTENCES or one.text in [other.text for other in kept]:
            continue
        if kept and len(one.text) > room:
            continue
        kept.append(one)
        room -= len(one.text)
    return sorted(kept, key=lambda one: one.place)
