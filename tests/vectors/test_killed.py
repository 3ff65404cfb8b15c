"""The embedder, or the server of vectors, killed again and again during a talk: no recall fails, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.chroma import ChromaServer
from tests.servers.embedding_stub import EmbeddingStub
from tests.vectors.memories import PROGRAM, Embedded, Open, new_user, opening
from threadkeep import Scope, UserMessage
from threadkeep.model import Recalled
from threadkeep.worker import embedding

WORDS = ("river", "bread", "engine", "violin", "market", "winter", "doctor", "garden", "letter", "stone")


@pytest.fixture
def stub() -> Iterator[EmbeddingStub]:
    with EmbeddingStub() as running:
        yield running


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = embedding.EmbedLimits(retry_seconds=(0.01, 0.01))
    monkeypatch.setattr(embedding, "EmbedLimits", lambda: limits)


async def talked(
    embedded: Embedded, me: Scope, kill: Callable[[], None], restart: Callable[[], None], turns: int = 40
) -> list[Recalled]:
    """A talk whose every turn is recalled by its own words as soon as it is stored. Meanwhile there are kills."""
    recalled: list[Recalled] = []
    for number in range(turns):
        said = f"{WORDS[number % 10]} number{number} {WORDS[number % 7]}"
        await embedded.memory.append(me.with_conversation(f"c{number % 4}"), [UserMessage(said)])
        recalled.append(await embedded.memory.recall(me, f"number{number}"))
        assert recalled[-1].hits[0].content == said
        if number % 12 == 6:
            await asyncio.to_thread(kill)
        if number % 12 == 11:
            await asyncio.to_thread(restart)
    return recalled


async def failures(embedded: Embedded, me: Scope) -> list[str]:
    given_up = await embedded.parts.stores.backlog.given_up(100)
    return [one.reason for one in given_up if one.scope.user == me.user]


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
async def test_an_embedder_that_is_killed_costs_no_recall_and_only_what_it_refuses_is_given_up(
    place: str, tmp_path: Path, stub: EmbeddingStub, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db" if place == "sqlite" else request.getfixturevalue("postgres_server").url
    open_: Open = opening(url, embedder="ollama:bge-m3", ollama_host="127.0.0.1", ollama_port=stub.port)
    me = new_user()
    stub.refused = "unspeakable"
    async with open_() as embedded:
        await embedded.memory.append(me, [UserMessage("an unspeakable thing"), UserMessage("a fine day")])
        await embedded.memory.flushed(timeout=120)  # with all that other tests have left on the server
        recalled = await talked(embedded, me, stub.kill, stub.restart)
        assert any(one.degraded for one in recalled)
        stub.kill()
        stub.restart()
        await embedded.memory.flushed(timeout=120)
        assert await embedded.vectors(me.whole_user) == 41
        (reason,) = await failures(embedded, me)
        assert reason.startswith("EmbedderRefused")
        async with asyncio.timeout(30):  # it is asked again now and then
            while (await embedded.memory.recall(me, "number39")).degraded:
                await asyncio.sleep(0.05)


async def test_a_chroma_that_is_killed_costs_no_recall_and_nothing_is_given_up(tmp_path: Path) -> None:
    me = new_user()
    with ChromaServer(PROGRAM) as server:
        async with opening(f"sqlite:///{tmp_path}/memory.db", chroma_path=server.url)() as embedded:
            await embedded.memory.append(me, [UserMessage("a fine day")])
            await embedded.memory.flushed()
            recalled = await talked(embedded, me, server.kill, server.restart, turns=16)
            assert any(one.degraded for one in recalled)
            await embedded.memory.flushed(timeout=60)
            assert await embedded.vectors(me.whole_user) == 17
            assert await failures(embedded, me) == []
