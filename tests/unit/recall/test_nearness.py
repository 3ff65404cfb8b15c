"""The nearest vectors are searched while terms are looked up."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from threadkeep import Scope
from threadkeep.errors import EmbedderError
from threadkeep.ports.index import Lookup, Near, Position, Statistics
from threadkeep.recall.candidates import nearby
from threadkeep.recall.context import most_tokens_in
from threadkeep.recall.pipeline import Pipeline, Request
from threadkeep.recall.question import Question

ME = Scope("shop", "ann")
ASKED = Request(Question("where?"), "where?", ME, None, 10)


class Index:
    """One without messages."""

    def __init__(self) -> None:
        self.looked_up = asyncio.Event()
        self.read: Collection[Position] = ()

    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        self.looked_up.set()
        return Lookup(Statistics(0, 0.0, {}))

    async def turns(self, found: Lookup, positions: Collection[Position]) -> Any:
        self.read = positions
        return (), {}


async def no_messages(scope: Scope | None) -> Sequence[Any]:
    return ()


def pipeline(index: Index, nearest: Any) -> Pipeline:
    return Pipeline(index, nearest, None, None, no_messages, most_tokens_in)


async def test_it_is_looked_for_meanwhile() -> None:
    index = Index()

    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        await index.looked_up.wait()
        return [Near("c1", 3, "m3", 0.7, "a model"), Near("c1", 3, "m3", 0.2, "a model")]

    async with asyncio.timeout(30):
        assert not (await pipeline(index, nearest).run(ASKED)).degraded
    assert Position("c1", 3) in index.read
    near = await nearby(nearest, ME, "where?")
    assert (near.degraded, near.model) == (False, "a model")
    assert {id_: (one.seq, one.cosine) for id_, one in near.found.items()} == {"m3": (3, 0.7)}


async def test_it_ends_with_a_question_that_fails() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        try:
            asked.set()
            return await asyncio.Future[Sequence[Near]]()
        finally:
            ended.set()

    class Failing(Index):
        async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
            await asked.wait()
            raise LookupError("the words are gone")

    with pytest.raises(LookupError):
        await pipeline(Failing(), nearest).run(ASKED)
    assert ended.is_set()


async def test_what_does_not_answer_is_told() -> None:
    async def nearest(scope: Scope, question: str, k: int) -> Sequence[Near]:
        raise EmbedderError("away")

    near = await nearby(nearest, ME, "where?")
    assert near.degraded
    assert not near.found
    assert (await pipeline(Index(), nearest).run(ASKED)).degraded
