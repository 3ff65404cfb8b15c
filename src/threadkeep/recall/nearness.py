"""Asking what is near in meaning. That it cannot be told now is part of the answer: words carry on alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from threadkeep.errors import ThreadkeepError
from threadkeep.ports.evidence import Place
from threadkeep.ports.nearest import Nearest
from threadkeep.recall.search import Near
from threadkeep.resilience.one_call import sparing
from threadkeep.scope import Scope

MOST_NEAR = 200
_log = logging.getLogger("threadkeep.recall")


class Nearby(NamedTuple):
    found: Mapping[str, Near]  # by message id
    degraded: bool = False  # there is an embedder, and it or its index did not answer
    model: str = ""  # that made the vectors


async def nearby(nearest: Nearest | None, scope: Scope, question: str, k: int = MOST_NEAR) -> Nearby:
    """`question` is redacted. Without an embedder nothing is near, and nothing is wrong."""
    if nearest is None or not question.strip():
        return Nearby({})
    try:
        found = await nearest(scope, question, k)
        near = {one.message_id: Near(Place(one.conversation, one.seq), one.cosine) for one in reversed(found)}
        return Nearby(near, model=found[0].model if found else "")
    except ThreadkeepError as error:
        _log.info("recalling by words alone (%s)", type(error).__name__)
        return Nearby({}, degraded=True)


@asynccontextmanager
async def looking_nearby(nearest: Nearest | None, scope: Scope, question: str) -> AsyncGenerator[asyncio.Task[Nearby]]:
    """While words are looked up. Words alone are an answer, so there must be time for them."""
    with sparing():
        looking = asyncio.create_task(nearby(nearest, scope, question))
    try:
        yield looking
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
