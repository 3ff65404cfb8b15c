"""From a question to the hits: words and what is near in meaning are looked up, what is queued joins, all is ranked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from threadkeep.errors import ThreadkeepError
from threadkeep.model import Hit, Message
from threadkeep.ports.evidence import Evidence
from threadkeep.ports.index import TermIndex
from threadkeep.ports.rerank import Rerank
from threadkeep.recall.fuse import fused
from threadkeep.recall.nearness import Nearby
from threadkeep.recall.question import Question
from threadkeep.recall.queued import with_queued
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


MOST_RERANKED = 20
PATIENCE_SECONDS = 10.0
_log = logging.getLogger("threadkeep.recall")


async def reranked(
    rerank: Rerank, question: str, hits: tuple[Hit, ...], patience: float = PATIENCE_SECONDS
) -> tuple[Hit, ...]:
    """The first hits by the reranker, the others behind them. Each hit tells its rank by it among the others."""
    first = hits[:MOST_RERANKED]
    if len(first) < 2:
        return hits
    try:
        async with asyncio.timeout(patience):
            order = in_order(await rerank(question, [hit.content for hit in first]), len(first))
    except (ThreadkeepError, TimeoutError) as error:
        _log.info("recalling without the reranker (%s)", type(error).__name__)
        return hits
    return (*(_ranked(first[position], rank) for rank, position in enumerate(order, 1)), *hits[MOST_RERANKED:])


def in_order(positions: Sequence[int], count: int) -> list[int]:
    """All of them, each once."""
    told = [position for position in positions if 0 <= position < count]
    return list(dict.fromkeys([*told, *range(count)]))


def _ranked(hit: Hit, rank: int) -> Hit:
    why = dict(hit.why)
    return replace(hit, why=why | {"ranks": {**why.get("ranks", {}), "reranker": rank}})
