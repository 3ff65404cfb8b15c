"""The best hits in a better order, by an application's own reranker or a chat model; never worse for its failing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from threadkeep import Memory, Scope, Settings, UserMessage, open_memory
from threadkeep.errors import ModelTimeout, ModelUnavailable
from threadkeep.models.chat.reranking import ModelReranker
from threadkeep.ports.chat import ChatReply, ChatRequest
from threadkeep.ports.models import Rerank
from threadkeep.recall.rerank import in_order, reranked

ME = Scope("shop", "u1", "c1")
SAID = ["the red bicycle is in the shed", "the bicycle was stolen", "a bicycle for Anna, 0912 345 678"]


class Answering:
    """A chat model that says what it is told to, and keeps what it was asked."""

    name, generates = "test:answering", True

    def __init__(self, answer: str, generates: bool = True) -> None:
        self.answer, self.generates = answer, generates
        self.asked: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        if not self.answer:
            raise ModelUnavailable("it is away")
        return ChatReply(self.answer)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        yield await self.reply(request)

    async def close(self) -> None: ...


async def recalled(rerank: Rerank | None, query: str = "bicycle", k: int = 10) -> list[str]:
    async with open_memory("sqlite://", settings=Settings(embedder="none"), rerank=rerank) as memory:
        return [hit.content for hit in (await _stored(memory, query, k))]


async def _stored(memory: Memory, query: str, k: int) -> Sequence[object]:
    await memory.append(ME, [UserMessage(text) for text in SAID])
    return (await memory.recall(ME, query, k=k)).hits


async def test_hits_come_in_the_order_the_model_names() -> None:
    plain = await recalled(None)
    assert await recalled(ModelReranker(Answering("3, 1"))) == [plain[2], plain[0], plain[1]]


async def test_what_stands_beyond_k_may_be_lifted_into_it() -> None:
    plain = await recalled(None)
    assert await recalled(ModelReranker(Answering("3")), k=1) == [plain[2]]


@pytest.mark.parametrize("answer", ["", "none of them", "0, 99, 12"], ids=["away", "words", "numbers of nothing"])
async def test_a_model_that_cannot_tell_leaves_the_order_as_it_was(answer: str) -> None:
    assert await recalled(ModelReranker(Answering(answer))) == await recalled(None)


async def test_a_model_that_only_quotes_is_not_asked() -> None:
    model = Answering("3", generates=False)
    assert await recalled(ModelReranker(model)) == await recalled(None)
    assert model.asked == []


async def test_the_model_reads_nothing_that_may_not_be_kept() -> None:
    model = Answering("1")
    await recalled(ModelReranker(model), "whose bicycle, anna@example.com or 0912 345 678?")
    (request,) = model.asked
    told = repr([message.content for message in request.messages])  # type: ignore[union-attr]
    assert "bicycle" in told
    assert "anna@example.com" not in told
    assert "345 678" not in told


async def test_one_who_takes_too_long_is_done_without() -> None:
    async def never(question: str, texts: Sequence[str]) -> Sequence[int]:
        await asyncio.Event().wait()
        return ()

    async with open_memory("sqlite://", settings=Settings(embedder="none")) as memory:
        hits = tuple(await _stored(memory, "bicycle", 10))
    assert await reranked(never, "bicycle", hits, patience=0.01) == hits


async def test_a_hit_tells_its_rank_by_the_reranker() -> None:
    async with open_memory("sqlite://", settings=Settings(embedder="none"), rerank=_backwards) as memory:
        hits = await _stored(memory, "bicycle", 10)
    assert [hit.why["ranks"]["reranker"] for hit in hits] == [1, 2, 3]


async def _backwards(question: str, texts: Sequence[str]) -> Sequence[int]:
    return range(len(texts))[::-1]


async def test_an_error_of_ours_costs_no_answer() -> None:
    async def failing(question: str, texts: Sequence[str]) -> Sequence[int]:
        raise ModelTimeout("too long")

    assert await recalled(failing) == await recalled(None)


def test_positions_are_told_once_and_none_is_lost() -> None:
    assert in_order([2, 2, -1, 7], 4) == [2, 0, 1, 3]
