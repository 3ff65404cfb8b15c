"""From a question to the hits: words and what is near in meaning are looked up, what is queued joins, all is ranked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from threadkeep.model import Hit, Message
from threadkeep.ports.evidence import Evidence
from threadkeep.ports.index import TermIndex
from threadkeep.ports.rerank import Rerank
from threadkeep.recall.fuse import fused
from threadkeep.recall.nearness import Nearby
from threadkeep.recall.question import Question
from threadkeep.recall.queued import with_queued
from threadkeep.recall.rerank import MOST_RERANKED, reranked
from threadkeep.recall.search import Nearest, search_for
from threadkeep.scope import Scope

_MOST_WEIGHED_ON_THE_LOOP = 100  # turns


async def evidence_for(
    question: Question,
    index: TermIndex,
    place: Scope,
    looking: asyncio.Future[Nearby],
    talk: Scope | None,
    hot: Sequence[Message],
) -> Evidence:
    """What the index, the vectors and the hot store, where there are any, know of the question."""

    async def nearest() -> Nearest:
        return (await looking).found

    search = search_for(question, nearest)
    evidence = await index.evidence(place, search)
    if hot and talk:
        evidence = with_queued(evidence, talk.require_conversation(), hot, search.terms)
    near = await looking
    return replace(evidence, cosines={id_: one.cosine for id_, one in near.found.items()}, model=near.model)


async def ranked(
    question: Question, evidence: Evidence, most: int, rerank: Rerank | None, sent: str
) -> tuple[Hit, ...]:
    """The best `most`. `sent` is the question as the reranker may see it."""
    work = partial(fused, question, evidence, most if rerank is None else max(most, MOST_RERANKED))
    hits = await asyncio.to_thread(work) if len(evidence.turns) > _MOST_WEIGHED_ON_THE_LOOP else work()
    return hits if rerank is None else (await reranked(rerank, sent, hits))[:most]
