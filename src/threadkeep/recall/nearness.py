"""Asking what is near in meaning. That it cannot be told now is part of the answer: words carry on alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import NamedTuple

from threadkeep.errors import ThreadkeepError
from threadkeep.ports.evidence import Place
from threadkeep.ports.nearest import Nearest
from threadkeep.recall.search import Near
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


class LookingNearby:
    """Begun where it is made, ended with the `async with` around it at the latest: words are looked up meanwhile."""

    def __init__(self, nearest: Nearest | None, scope: Scope, question: str) -> None:
        self._looking = asyncio.create_task(nearby(nearest, scope, question))

    async def __aenter__(self) -> asyncio.Task[Nearby]:
        return self._looking

    async def __aexit__(self, *exception: object) -> None:
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
