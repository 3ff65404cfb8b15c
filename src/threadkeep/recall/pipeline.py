"""Recall from end to end: question → candidates → score → rerank → context, a file of this package for each step.

Summaries of sessions are scored the same way, as turns of a conversation each.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest

from threadkeep.model import Hit, Message, Recalled, StoredReflection
from threadkeep.ports.index import Evidence, Nearest, Shape, Statistics, TermIndex
from threadkeep.ports.models import Rerank
from threadkeep.recall.candidates import evidence_for, nearby, terms_to_look_up, turn_of, with_queued
from threadkeep.recall.context import CountTokens, assembled
from threadkeep.recall.question import Question
from threadkeep.recall.rerank import MOST_RERANKED, reranked
from threadkeep.recall.score import fused
from threadkeep.scope import Scope

_MOST_SCORED_ON_THE_LOOP = 100  # turns; more are scored in a thread, so that other tasks need not wait


@dataclass(frozen=True, slots=True)
class Request:
    question: Question
    sent: str  # the question redacted, as embedders and rerankers may see it
    within: Scope  # the user, or one conversation of theirs
    here: Scope | None  # the conversation at hand
    k: int
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What recall reads, and `run`, which reads it. A part that is None is not there."""

    index: TermIndex
    nearest: Nearest | None
    rerank: Rerank | None
    queued: Callable[[Scope], Awaitable[Sequence[Message]]] | None  # messages of a conversation not in the index yet
    recent: Callable[[Scope | None], Awaitable[Sequence[Message] | None]]  # None where they cannot be read in time
    count_tokens: CountTokens

    async def run(self, request: Request) -> Recalled:
        evidence, queued, degraded = await self._evidence(request)
        most = request.k if self.rerank is None else max(request.k, MOST_RERANKED)
        work = partial(fused, request.question, evidence, most)
        many = len(evidence.turns) > _MOST_SCORED_ON_THE_LOOP
        hits = await asyncio.to_thread(work) if many else work()
        if self.rerank is not None:
            hits = (await reranked(self.rerank, request.sent, hits))[: request.k]
        recent = queued or await self.recent(request.here) if hits else ()
        name = None if request.here is None else request.here.conversation
        found = assembled(hits, evidence, recent or (), name, request.budget, self.count_tokens, request.k)
        return replace(found, degraded=True) if degraded or recent is None else found

    async def _evidence(self, request: Request) -> tuple[Evidence, Sequence[Message], bool]:
        """With what is queued, and whether vectors were missing. They are searched while terms are looked up.

        Nothing else of recall runs concurrently.
        """
        looking = asyncio.create_task(nearby(self.nearest, request.within, request.sent))
        try:
            queued = await self.queued(request.here) if self.queued and request.here else ()
            evidence = await evidence_for(request.question, self.index, request.within, looking)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        if queued and request.here:
            terms = terms_to_look_up(request.question)
            evidence = with_queued(evidence, request.here.require_conversation(), queued, terms)
        return evidence, queued, looking.result().degraded


def text_of(summary: StoredReflection) -> str:
    """With what the session was about."""
    return "\n".join(filter(None, (*summary.reflection.causes, summary.reflection.summary)))


def sessions_on(question: Question, summaries: Sequence[StoredReflection]) -> list[StoredReflection]:
    """Those that hold a term of the question, best first."""
    wanted = frozenset(question.weights)
    turns = [
        turn_of(Message(1, str(place), "assistant", text_of(one), one.at), str(place), wanted)
        for place, one in enumerate(summaries)
    ]
    if not turns:
        return []
    holding = Counter(term for turn in turns for term in turn.counts)
    statistics = Statistics(len(turns), sum(turn.length for turn in turns) / len(turns), holding)
    shapes = {turn.conversation: Shape(1, turn.length) for turn in turns}
    hits = fused(question, Evidence(statistics, turns, shapes), len(turns))
    return [summaries[int(hit.conversation)] for hit in hits]


def in_turns(hits: Sequence[Hit], summaries: Sequence[Hit]) -> Iterator[Hit]:
    """By their ranks, since their scores are of two kinds; messages come first."""
    return (one for one in chain.from_iterable(zip_longest(hits, summaries)) if one is not None)


def as_hit(summary: StoredReflection) -> Hit:
    """Under the id of the last message it was made from: what is erased of it takes the summary along."""
    conversation = summary.conversation or ""
    why = {"session": True, "made_of": summary.evidence}
    return Hit(summary.evidence[-1], conversation, 0, "assistant", text_of(summary), summary.at, 0.0, why)
