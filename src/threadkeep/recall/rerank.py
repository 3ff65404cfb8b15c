"""The best hits in the order of a reranker: an application's own, or a model that reads question and text together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from threadkeep.errors import ThreadkeepError
from threadkeep.model import Hit
from threadkeep.ports.models import Rerank

MOST_RERANKED = 20
PATIENCE_SECONDS = 10.0
_log = logging.getLogger("threadkeep.recall")


async def reranked(
    rerank: Rerank, question: str, hits: tuple[Hit, ...], patience: float = PATIENCE_SECONDS
) -> tuple[Hit, ...]:
    """The first hits in the reranker's order, the others after them. Each of the first says its rank in `why`.

    A reranker that fails, or takes longer than `patience` seconds, leaves the order as it was.
    """
    first = hits[:MOST_RERANKED]
    if len(first) < 2:
        return hits
    try:
        async with asyncio.timeout(patience):
            order = in_order(await rerank(question, [hit.content for hit in first]), len(first))
    except (ThreadkeepError, TimeoutError) as error:
        _log.info("recalling without the reranker (%s)", type(error).__name__)
        return hits
    ranked: list[Hit] = []
    for rank, hit in enumerate((first[position] for position in order), 1):
        ranks = {**hit.why.get("ranks", {}), "reranker": rank}
        ranked.append(replace(hit, why={**hit.why, "ranks": ranks}))
    return (*ranked, *hits[MOST_RERANKED:])


def in_order(positions: Sequence[int], count: int) -> list[int]:
    """All positions, each once: those given, then those left out."""
    given = [position for position in positions if 0 <= position < count]
    return list(dict.fromkeys([*given, *range(count)]))
