"""The harness can go red: each of these breaks a promise on purpose, and the oracle must say which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.chaos import sabotage
from tests.chaos.harness import Chaos
from tests.chaos.oracle import ClientJournal
from tests.chaos.test_acknowledged_answers import rounds_on
from tests.chaos.writing import USER, Work, appending, write
from tests.servers.redis import RedisServer
from threadkeep import ModelResponse, UserMessage
from threadkeep.agent.assistant import Assistant
from threadkeep.compose.worker import open_worker
from threadkeep.ports.journal import JournalEntry


async def test_a_worker_that_settles_before_it_places_is_found_out(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis()
    async with chaos.memory(redis.url, worker=False) as memory:
        await write(appending(memory), Work(chaos.folder, "w", writers=2, turns=5))
    async with open_worker(chaos.url, redis=redis.url) as worker:
        flushing = worker._flushing

        async def settled_and_then_killed(entries: Sequence[JournalEntry]) -> None:
            await flushing._queue.settle(entries)

        flushing._flush = settled_and_then_killed  # type: ignore[method-assign]
        await worker.drain()
    assert len((await chaos.verdict()).lost) == 10


@pytest.mark.usefixtures("surface_settings")
async def test_an_assistant_that_erases_what_its_history_does_not_show_is_found_out(
    chaos: Chaos, new_redis: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "_run", Assistant._run)  # which puts it back in the end
    sabotage.WAYS["inferring"]()
    async with rounds_on(chaos, new_redis(appendonly=True, appendfsync="always")) as rounds:
        await rounds.one(0, frozen=False, late=False)
    complaints = (await chaos.verdict()).complaints("gaps", "misplaced")
    assert complaints.keys() == {"lost", "removed"}
    assert {turn.partition("-")[0] for turn in complaints["lost"]} <= {"agent_chat", "conversations", "api_chat"}


async def test_an_acknowledgement_without_a_store_is_found_out(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    async with chaos.memory(new_redis().url) as memory:
        await write(appending(memory), Work(chaos.folder, "w", writers=1, turns=3))
        with ClientJournal(chaos.folder / "liar.jsonl") as journal:
            await journal.note("liar 0", "c0", "try")
            await journal.note("liar 0", "c0", "ack", seq=9, ids=[])
        await memory.flushed(timeout=30)
    assert (await chaos.verdict()).complaints() == {"lost": ["liar 0"]}


async def test_a_retry_without_its_key_and_a_turn_nobody_sent_are_found_out(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    async with chaos.memory(new_redis().url) as memory:
        await write(appending(memory), Work(chaos.folder, "w", writers=1, turns=3, talks=1))
        place = USER.with_conversation("c0")
        for turn in ("w0 1", "nobody 0"):
            await memory.append(place, [UserMessage(f"{turn} 0"), ModelResponse(f"{turn} 1")])
        await memory.flushed(timeout=30)
    complaints = (await chaos.verdict()).complaints()
    assert (complaints["duplicated"], complaints["phantom"]) == (["w0 1"], ["nobody 0"])
