"""An answer without a model: the sentences, of what was found and of what the user said, that bear on the question.

It quotes and never invents. Where nothing bears on the question the reply is empty, and its caller says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.models.language import closest, detect
from threadkeep.models.sentences import sentences
from threadkeep.ports.chat import ChatReply, ChatRequest, Said
from threadkeep.ports.language import CERTAIN
from threadkeep.recall.normalise import is_written_without_spaces, query_weights, terms_of

_MOST_SENTENCES = 3
_ENOUGH = 0.25  # of the question's weight, or two words of it: less is chance
_ENOUGH_WITHOUT_SPACES = 0.4  # characters of one word meet those of another more often
_WORDS = 2
# Syllables that only ask: they bear on nothing, and would make what does a smaller share of the question.
_ASKING = {
    "vi": frozenset({"the", "nao", "sao", "gi", "dau", "may", "bao", "nhieu", "khong", "cho", "hoi", "xin", "shop"})
}
_LONGEST = 600
_CARRIED = 0.3  # what the question before lends to one that says little
_SAYS_LITTLE = 3  # terms


class _Sentence(NamedTuple):
    place: int
    text: str
    terms: frozenset[str]
    of_user: bool


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
        weights = _weights(asked, request.language)
        scored = _scored(_candidates(request, asked[:-1]), weights, request.language)
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


def _weights(asked: Sequence[str], language: str | None) -> dict[str, float]:
    weights = query_weights(asked[-1], language)
    if sum(map(_is_word, weights)) <= _SAYS_LITTLE and len(asked) > 1:
        for term, weight in query_weights(asked[-2], language).items():
            weights.setdefault(term, _CARRIED * weight)
    asking = closest(_ASKING, language) or frozenset[str]()
    telling = {term: weight for term, weight in weights.items() if not asking.intersection(_syllables(term))}
    return telling or weights


def _syllables(term: str) -> Sequence[str]:
    """A pair goes only with its last one: the first may be half of a word."""
    return term.split("_")[-1:]


def _candidates(request: ChatRequest, earlier: Sequence[str]) -> list[_Sentence]:
    texts = [(one.text, one.kind == "memory") for one in request.found] + [(text, True) for text in reversed(earlier)]
    split = [(part, of_user) for text, of_user in texts for part in sentences(text)]
    return [_Sentence(n, part, frozenset(terms_of(part)), of_user) for n, (part, of_user) in enumerate(split)]


def _scored(
    candidates: Sequence[_Sentence], weights: dict[str, float], language: str | None
) -> list[tuple[float, _Sentence]]:
    """Those that bear on the question, best first by the share of it that they hold.

    Single syllables and characters stand in everything: where words are written as two of them, one such, or a
    number, must be held.
    """
    holding = {term: sum(term in one.terms for one in candidates) for term in weights}
    worth = {term: weight / (1 + holding[term]) ** 0.5 for term, weight in weights.items() if holding[term]}
    whole = sum(weights.values()) or 1.0
    without_spaces = {term for term in weights if is_written_without_spaces(term)}
    pairs = {term for term in without_spaces if len(term) == 2}
    if language is None or _base(language) == "vi":
        pairs |= {term for term in weights if not _is_word(term)}
    telling = pairs and pairs | {term for term in weights if any(map(str.isdigit, term))}
    share = _ENOUGH_WITHOUT_SPACES if without_spaces else _ENOUGH
    scored: list[tuple[float, _Sentence]] = []
    for one in candidates:
        held = one.terms & worth.keys()
        words = sum(_is_word(term) and (len(term) > 1 or term not in without_spaces) for term in held)
        enough = sum(weights[term] for term in held) / whole >= share or words >= _WORDS
        if enough and (not telling or held & telling) and not one.text.endswith(("?", "？")):
            scored.append((sum(worth[term] for term in held), one))
    return sorted(scored, key=lambda row: (-row[0], row[1].place))


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
