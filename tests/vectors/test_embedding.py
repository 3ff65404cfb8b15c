"""Messages get their vectors: in the background, through outages, once each, of redacted text only."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.servers.chroma import ChromaServer
from tests.servers.embedding_stub import EmbeddingStub
from tests.vectors.memories import PROGRAM, Embedded, Open, new_user, opening
from tests.vectors.memories import chroma_server as chroma_server
from tests.vectors.memories import open_at as open_at
from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.cli.index import messages_status, rebuild_messages
from threadkeep.compose.worker import open_worker
from threadkeep.errors import InvalidInput, StoreUnavailable
from threadkeep.ports.index import MessageVectors
from threadkeep.ports.models import EmbeddingModel

TALK = ["I am allergic to peanuts", "My car is a red Toyota", "The dog is called Rex"]

MARKED = {"embed_failed": True}
WORDS = ("sun", "river", "bread", "engine", "violin", "market", "winter", "doctor", "garden", "letter", "ship", "stone")


def said(texts: list[str]) -> list[UserMessage]:
    return [UserMessage(text) for text in texts]


@pytest.fixture
def stub() -> Iterator[EmbeddingStub]:
    with EmbeddingStub() as running:
        yield running


def by(stub: EmbeddingStub) -> dict[str, Any]:
    return {"embedder": "ollama:bge-m3", "ollama_host": "127.0.0.1", "ollama_port": stub.port}


async def test_a_stored_message_is_found_by_its_meaning_once_flushed(open_at: Open) -> None:
    me = new_user()
    async with open_at() as embedded:
        await embedded.memory.append(me, said(TALK))
        other = me.with_conversation("c2")
        await embedded.memory.append(other, said(["Her birthday is in May"]))
        await embedded.memory.flushed()
        found = await embedded.near(me.whole_user, "which nuts must she not eat?")
        assert (found[0].conversation, found[0].seq, len(found)) == ("c1", 1, 4)
        assert found[0].cosine == max(one.cosine for one in found)
        assert [one.seq for one in await embedded.near(other, "which nuts must she not eat?")] == [1]
        assert await embedded.near(new_user().whole_user, "which nuts") == []


async def test_a_long_message_is_cut_into_chunks(open_at: Open) -> None:
    me = new_user()
    async with open_at() as embedded:
        talk = "The weather was fine and we walked along the river. " * 120
        receipt = await embedded.memory.append(me, said([talk + "In the end I bought a violin."]))
        await embedded.memory.flushed()
        parts = embedded.parts
        assert len(parts.cut(talk)) > 2
        model = EmbeddingModel(parts.embedder.name, parts.embedder.dimensions or 0)
        (vector,) = await parts.embedder.embed(["bought a violin"])
        (hit,) = await parts.stores.index.search(me, model, vector, 5)
        assert (hit.message_id, hit.seq, hit.chunk > 1) == (receipt.kept[0], 1, True)


async def test_an_embedder_that_is_away_costs_no_recall_and_no_message(open_at: Open, stub: EmbeddingStub) -> None:
    me = new_user()
    async with open_at(**by(stub)) as embedded:
        await embedded.memory.append(me, said(TALK))
        await embedded.memory.flushed()
        assert not (await embedded.memory.recall(me, "peanuts")).degraded
        stub.away = True
        await embedded.memory.append(me, said(["Tuesday is market day"] * 5))
        for _ in range(20):
            recalled = await embedded.memory.recall(me, "market day")
            assert recalled.hits
            assert recalled.degraded
        with pytest.raises(StoreUnavailable, match="were not embedded"):
            await embedded.memory.flushed(timeout=0.5)
        assert await embedded.vectors(me.whole_user) == 3
        stub.away = False
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) == 8
        assert await given_up(embedded, me) == []


async def test_a_message_the_embedder_refuses_is_given_up_with_a_reason_and_the_others_are_not(
    open_at: Open, stub: EmbeddingStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_no_time(monkeypatch)
    me = new_user()
    stub.refused = "unspeakable"
    async with open_at(**by(stub)) as embedded:
        await embedded.memory.append(me, said([*TALK, "an unspeakable thing", "Her birthday is in May"]))
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) == 4
        (failed,) = await given_up(embedded, me)
        assert (failed["conversation"], failed["model"]) == ("c1", "ollama:bge-m3")
        assert "EmbedderRefused" in failed["reason"]
        assert "unspeakable" not in failed["reason"]
        assert (await embedded.memory.recall(me, "unspeakable")).hits
        assert [one.meta for one in (await embedded.memory.history(me)).messages] == [{}, {}, {}, MARKED, {}]
        stub.refused = None
        assert await embedded.parts.stores.backlog.forgive() >= 1
    async with open_at(**by(stub)) as embedded:
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) == 5
        assert [one.meta for one in (await embedded.memory.history(me)).messages] == [{}] * 5
        proof = await embedded.memory.erase(me.whole_user)
        assert proof.stores["vectors"].removed == 5


async def test_vectors_of_a_wrong_size_are_nobodys_fault_but_the_embedders(open_at: Open, stub: EmbeddingStub) -> None:
    me = new_user()
    stub.size = 512  # bge-m3 has 1024
    async with open_at(**by(stub)) as embedded:
        await embedded.memory.append(me, said(TALK))
        with pytest.raises(StoreUnavailable):
            await embedded.memory.flushed(timeout=0.5)
        assert (await embedded.memory.recall(me, "peanuts")).hits
        assert await embedded.vectors(me.whole_user) == 0
        stub.size = 1024
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) == 3
        assert await given_up(embedded, me) == []


async def test_another_model_takes_over_without_a_gap(open_at: Open, stub: EmbeddingStub) -> None:
    me = new_user()
    async with open_at() as embedded:
        await embedded.memory.append(me, said(TALK))
        await embedded.memory.flushed()
    stub.statuses = [503] * 10_000
    async with open_at(**by(stub)) as embedded:
        await embedded.memory.append(me, said(["It rains"]))
        (best, *_) = await embedded.near(me, "which nuts must she not eat?")
        assert best.seq == 1  # told by the vectors of the model before
        assert not (await embedded.memory.recall(me, "peanuts")).degraded
        stub.statuses.clear()
        await embedded.memory.flushed()
        assert [one.name for one in await embedded.parts.stores.index.models(me.whole_user)] == ["ollama:bge-m3"]
        assert len(await embedded.near(me, "which nuts must she not eat?")) == 4


async def test_an_index_built_by_a_model_nobody_knows_is_no_reason_to_fail(open_at: Open, stub: EmbeddingStub) -> None:
    me = new_user()
    async with open_at(**by(stub)) as embedded:
        receipt = await embedded.memory.append(me, said(TALK))
        stub.statuses = [503] * 10_000
        strange = EmbeddingModel("nobody:knows", 4)
        await embedded.parts.stores.index.upsert(strange, [MessageVectors(me, receipt.kept[0], [[1.0, 0, 0, 0]])])
        recalled = await embedded.memory.recall(me, "peanuts")
        assert recalled.hits
        stub.statuses.clear()
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) >= 3


async def test_a_critical_message_is_embedded_before_append_returns(open_at: Open, stub: EmbeddingStub) -> None:
    me = new_user()
    async with open_at(**by(stub)) as embedded:
        receipt = await embedded.memory.append(me, said(["Never give me peanuts"]), index="sync")
        assert (receipt.status, receipt.indexed, await embedded.vectors(me)) == ("stored", True, 1)
        assert (await embedded.memory.append(me, said(["later"]))).indexed is None
        await embedded.memory.flushed()
        stub.statuses = [400] * 10_000
        receipt = await embedded.memory.append(me, said(["Nor any cashews"]), index="sync")
        assert (receipt.status, receipt.indexed, receipt.as_dict()["indexed"]) == ("stored", False, False)
        stub.statuses.clear()
        await embedded.memory.flushed()
        assert await embedded.vectors(me) == 3
        with pytest.raises(InvalidInput):
            await embedded.memory.append(me, said(["x"]), index="soon")  # type: ignore[arg-type]


async def test_a_vector_that_was_being_made_does_not_outlive_its_message(open_at: Open) -> None:
    me = new_user()
    async with open_at() as embedded:
        receipt = await embedded.memory.append(me, said(TALK))
        await embedded.memory.flushed()
        model = EmbeddingModel(embedded.parts.embedder.name, embedded.parts.embedder.dimensions or 0)
        vectors = await embedded.parts.embedder.embed(TALK)
        late = [MessageVectors(me, id_, row) for id_, row in zip(receipt.kept, vectors, strict=True)]
        await embedded.memory.erase(me, receipt.kept[0])
        await embedded.parts.stores.index.upsert(model, late)  # as a worker would that had read them before
        assert await embedded.vectors(me.whole_user) == 2
        await asyncio.gather(
            embedded.memory.erase(me.whole_user),
            *(embedded.parts.stores.index.upsert(model, late) for _ in range(5)),
        )
        assert await embedded.vectors(me.whole_user) == 0
        assert await embedded.near(me.whole_user, "peanuts") == []


async def test_erased_turns_are_near_to_no_question(open_at: Open) -> None:
    me, kept = new_user(), random.Random(7)
    texts = [" ".join(kept.choices(WORDS, k=6)) for _ in range(60)]
    async with open_at() as embedded:
        ids: list[str] = []
        for number in range(6):
            where = me.with_conversation(f"c{number}")
            ids += (await embedded.memory.append(where, said(texts[number * 10 : number * 10 + 10]))).kept
        await embedded.memory.flushed()
        await embedded.memory.erase(me.with_conversation("c0"))
        await embedded.memory.erase(me.with_conversation("c1"), ids[10])
        proof = await embedded.memory.erase(me.with_conversation("c2"))
        assert proof.stores["vectors"].removed == 10
        gone = {*ids[:11], *ids[20:30]}
        for _ in range(100):
            question = " ".join(kept.choices(WORDS, k=3))
            near = {one.message_id for one in await embedded.near(me.whole_user, question, 60)}
            assert near == {*ids} - gone
            assert not gone & {hit.message_id for hit in (await embedded.memory.recall(me, question, k=60)).hits}
        await embedded.memory.erase(me.whole_user)
        assert await embedded.vectors(me.whole_user) == 0


async def test_queued_turns_are_embedded_after_they_were_flushed(
    postgres_server: Any, redis_server: Any, stub: EmbeddingStub
) -> None:
    me = new_user()
    async with opening(postgres_server.url)(redis=redis_server.url, **by(stub)) as embedded:
        receipt = await embedded.memory.append(me, said(TALK[:1]))
        assert (receipt.status, receipt.indexed) == ("queued", None)
        receipt = await embedded.memory.append(me, said(TALK[1:]), index="sync")
        assert (receipt.status, receipt.indexed) == ("queued", True)
        await embedded.memory.flushed()
        assert await embedded.vectors(me.whole_user) == 3
        proof = await embedded.memory.erase(me.whole_user)
        assert proof.stores["vectors"].removed == 3


async def test_behind_redis_sync_returns_once_the_message_can_be_found_by_its_meaning(
    postgres_server: Any, redis_server: Any, stub: EmbeddingStub
) -> None:
    me = new_user()
    async with opening(postgres_server.url)(redis=redis_server.url, **by(stub)) as embedded:
        for number in range(3):
            receipt = await embedded.memory.append(me, said([f"message {number}"]), index="sync")
            assert (receipt.status, receipt.indexed) == ("queued", True)
            assert await embedded.vectors(me.whole_user) == number + 1


async def test_a_killed_chroma_costs_no_recall_and_the_backlog_drains_once_it_is_back(tmp_path: Path) -> None:
    me = new_user()
    with ChromaServer(PROGRAM) as server:
        async with opening(f"sqlite:///{tmp_path}/memory.db", chroma_path=server.url)() as embedded:
            await embedded.memory.append(me, said(TALK))
            await embedded.memory.flushed()
            server.kill()
            receipt = await embedded.memory.append(me, said(["Tuesday is market day"] * 5))
            recalled = [await embedded.memory.recall(me, "market day") for _ in range(20)]
            assert all(one.hits and one.degraded for one in recalled)
            proof = await embedded.memory.erase(me, receipt.kept[0])
            assert (proof.complete, proof.stores["vectors"].failed) == (False, 1)
            server.restart()
            await embedded.memory.flushed(timeout=60)
            assert await embedded.vectors(me) == 7
            assert (await embedded.memory.erase(me, receipt.kept[0])).complete
            assert await given_up(embedded, me) == []


KILLED = """
import asyncio, sys
from threadkeep import Scope, UserMessage, open_memory
async def main():
    async with open_memory(sys.argv[1]) as memory:
        for part in range(20):
            me = Scope("shop", "u1", f"c{part}")
            await memory.append(me, [UserMessage(f"turn {part} {number} " + "river " * 30) for number in range(100)])
        print("stored", flush=True)
        await memory.flushed()
asyncio.run(main())
"""


async def test_a_killed_worker_is_taken_over_and_nothing_is_doubled(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    user = Scope("shop", "u1")
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, url, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"stored\n"
        process.kill()
        await process.wait()
    async with opening(url)() as embedded:
        stats = await embedded.memory.stats(user)
        await embedded.memory.flushed(timeout=60)
        assert stats.messages == 6_000
        assert await embedded.vectors(user) == 6_000
        assert len({(one.conversation, one.seq) for one in await embedded.near(user, "river", 7_000)}) == 6_000


async def meta_in(memory: Any, me: Scope, expected: list[dict[str, Any]]) -> None:
    """Waits for it: the mark comes after the last try."""
    found: list[dict[str, Any]] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(20):
            while (found := [dict(one.meta) for one in (await memory.history(me)).messages]) != expected:
                await asyncio.sleep(0.02)
    assert found == expected


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
async def test_behind_redis_history_shows_what_was_given_up(
    place: str, request: pytest.FixtureRequest, redis_server: Any, stub: EmbeddingStub, tmp_path: Path
) -> None:
    """The window is in Redis, the mark came to the archive: by the process itself, by a worker, and its end."""
    url = f"sqlite:///{tmp_path}/memory.db"
    if place != "sqlite":
        url = request.getfixturevalue("postgres_server").url
    in_no_time(request.getfixturevalue("monkeypatch"))
    stub.refused = "unspeakable"
    settings = Settings().model_copy(update=by(stub))
    with_redis = settings.model_copy(update={"redis_url": redis_server.url})
    mine, theirs = new_user(), new_user()
    async with open_memory(url, redis=redis_server.url, settings=settings) as memory:
        await memory.append(mine, said(["It rains", "an unspeakable thing"]))
        await memory.flushed()
        before = await memory.history(mine)
        await meta_in(memory, mine, [{}, MARKED])
        after = await memory.history(mine)
        assert [replace(one, meta={}) for one in after.messages] == [replace(one, meta={}) for one in before.messages]
        await memory.append(mine, said(["The sun shines"]))
        await meta_in(memory, mine, [{}, MARKED, {}])
    async with open_memory(url, redis=redis_server.url, settings=settings, worker=False) as memory:
        await memory.append(theirs, said(["an unspeakable thing", "It rains"]))
        async with open_worker(url, redis=redis_server.url, settings=settings) as worker:
            await worker.drain()
            await meta_in(memory, theirs, [MARKED, {}])
        stub.refused = None
        assert await rebuild_messages(url, with_redis) == {"embedded": 2, "embed_failed": 0}
        await meta_in(memory, theirs, [{}, {}])
        await meta_in(memory, mine, [{}, {}, {}])


@pytest.mark.parametrize("now", ["none", "a Chroma folder"])
async def test_what_was_given_up_is_listed_whatever_the_embedder_is_by_now(
    now: str, stub: EmbeddingStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_no_time(monkeypatch)
    stub.refused = "unspeakable"
    url, me = f"sqlite:///{tmp_path}/memory.db", new_user()
    folder = {"chroma_path": str(tmp_path / "chroma")} if now != "none" else {}
    async with opening(url)(**by(stub), **folder) as embedded:
        receipt = await embedded.memory.append(me, said(["an unspeakable thing"]))
        await embedded.memory.flushed()
    changes = {"embedder": "none"} if now == "none" else by(stub) | folder
    told = await messages_status(url, Settings().model_copy(update=changes))
    assert told is not None
    assert [one["message_id"] for one in told["embed_failed"]] == [*receipt.kept]
    assert told["waiting_for_vectors"] is None


async def given_up(embedded: Embedded, me: Scope) -> list[dict[str, Any]]:
    found = [one.as_dict() for one in await embedded.parts.stores.backlog.given_up(100)]
    return [one for one in found if one["user"] == me.user]


def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses before giving up, without waiting for them."""
    from threadkeep.worker import embedding

    limits = embedding.EmbedLimits(retry_seconds=(0.01, 0.01))
    monkeypatch.setattr(embedding, "EmbedLimits", lambda: limits)
