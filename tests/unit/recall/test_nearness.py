"""What is near in meaning is found out while words are looked up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from threadkeep import Scope
from threadkeep.errors import EmbedderError
from threadkeep.ports.evidence import Place
from threadkeep.ports.nearest import Near
from threadkeep.recall.nearness import LookingNearby

ME = Scope("shop", "ann")


async def test_it_is_looked_for_meanwhile() -> None:
    words_are_known = asyncio.Event()

    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        await words_are_known.wait()
        return [Near("c1", 3, "m3", 0.7, "a model"), Near("c1", 3, "m3", 0.2, "a model")]

    async with LookingNearby(nearest, ME, "where?") as looking:
        words_are_known.set()
        near = await looking
    assert (near.degraded, near.model) == (False, "a model")
    assert {id_: (one.place, one.cosine) for id_, one in near.found.items()} == {"m3": (Place("c1", 3), 0.7)}


async def test_it_ends_with_a_question_that_fails() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        try:
            asked.set()
            return await asyncio.Future[Sequence[Near]]()
        finally:
            ended.set()

    async def look_up_words() -> None:
        async with LookingNearby(nearest, ME, "where?"):
            await asked.wait()
            raise LookupError("the words are gone")

    with pytest.raises(LookupError):
        await look_up_words()
    assert ended.is_set()


async def test_what_does_not_answer_is_told() -> None:
    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        raise EmbedderError("away")

    async with LookingNearby(nearest, ME, "where?") as looking:
        near = await looking
    assert near.degraded
    assert not near.found
