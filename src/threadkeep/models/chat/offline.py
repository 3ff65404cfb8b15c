"""An answer without a model: the sentences, of what was found and of what the user said, that bear on the question.

It quotes and never invents. Where nothing bears on the question the reply is empty, and its caller says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.models.sentences import sentences
from threadkeep.ports.chat import ChatReply, ChatRequest, Said
from threadkeep.recall.normalise import is_written_without_spaces, query_weights, terms_of

_MOST_SENTENCES = 3
_ENOUGH = 0.25  # of the question's weight, or two words of it: less is chance
_WORDS = 2
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
        candidates = _candidates(request, asked[:-1])
        you_said = self.you_said.get(request.language or "", "You said earlier:")
        return ChatReply(_quoted(_chosen(candidates, weights), you_said))

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
    return weights


def _candidates(request: ChatRequest, earlier: Sequence[str]) -> list[_Sentence]:
    texts = [(one.text, one.kind == "memory") for one in request.found] + [(text, True) for text in reversed(earlier)]
    split = [(part, of_user) for text, of_user in texts for part in sentences(text)]
    return [_Sentence(n, part, frozenset(terms_of(part)), of_user) for n, (part, of_user) in enumerate(split)]


def _chosen(candidates: Sequence[_Sentence], weights: dict[str, float]) -> list[_Sentence]:
    """Best first by the share of the question they hold, then in the order they stand in.

    Single syllables and characters stand in everything: where words are written as two of them, one such, or a
    number, must be held.
    """
    holding = {term: sum(term in one.terms for one in candidates) for term in weights}
    worth = {term: weight / (1 + holding[term]) ** 0.5 for term, weight in weights.items() if holding[term]}
    whole = sum(weights.values()) or 1.0
    pairs = {term for term in weights if not _is_word(term) or (len(term) == 2 and is_written_without_spaces(term))}
    telling = pairs and pairs | {term for term in weights if any(map(str.isdigit, term))}
    scored: list[tuple[float, _Sentence]] = []
    for one in candidates:
        held = one.terms & worth.keys()
        enough = sum(weights[term] for term in held) / whole >= _ENOUGH or sum(map(_is_word, held)) >= _WORDS
        if enough and (not telling or held & telling) and not one.text.endswith(("?", "？")):
            scored.append((sum(worth[term] for term in held), one))
    if not scored:
        return []
    scored.sort(key=lambda row: (-row[0], row[1].place))
    best = scored[0][0]
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
