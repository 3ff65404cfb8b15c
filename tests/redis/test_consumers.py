"""Names that workers leave in the journal: those of the dead go, those who hold something stay."""

from __future__ import annotations

import asyncio
from typing import Any

from threadkeep.journal.targets import archive_consumer
from threadkeep.ports.archive import Entry, Placed
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.turns import QUEUE, RedisTurns
from threadkeep.testing.drafts import admitted, new_scope
from threadkeep.testing.stores import ArchiveAsked


async def names(client: RedisClient) -> set[str]:
    keys = (await client.link()).keys
    found: set[str] = set()
    for tag in keys.tags:
        if not await client.command("EXISTS", keys.journal(tag)):
            continue
        for consumer in await client.command("XINFO", "CONSUMERS", keys.journal(tag), "archive"):
            fields: Any = (
                consumer if isinstance(consumer, dict) else dict(zip(consumer[::2], consumer[1::2], strict=True))
            )
            found.add((fields.get(b"name") or fields["name"]).decode())
    return found


async def test_the_names_of_the_silent_go_and_those_who_hold_something_stay(server: Any, client: RedisClient) -> None:
    server.wipe()
    patient, hasty = RedisJournal(client, stale_seconds=60), RedisJournal(client, stale_seconds=60, silent_seconds=0)
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    assert await hasty.retire() == 0  # before there is anything
    await hot.append(scope, admitted("hello"))
    await patient.settle(await patient.claim("idles", 10))
    await hot.append(scope, admitted("more"))
    held = await patient.claim("holds", 10)
    assert len(held) == 1
    assert await patient.retire() == 0
    assert await names(client) >= {"holds", "idles"}
    await hasty.retire()
    assert await names(client) == {"holds"}
    assert await patient.retire("holds") == 0 or (await client.link()).keys.cluster  # there: where it holds nothing
    await patient.settle(held)
    await patient.retire("holds")
    assert await names(client) == set()
    await hot.append(scope, admitted("again"))
    assert len(await patient.claim("holds", 10)) == 1  # a name that was forgotten is known again


class Taking:
    async def place(self, entries: list[Entry]) -> list[Placed]:
        return [Placed("stored", stored=len(entry.messages)) for entry in entries]


async def test_a_worker_tidies_when_it_begins_and_takes_its_name_along(server: Any, client: RedisClient) -> None:
    server.wipe()
    hasty = RedisJournal(client, stale_seconds=60, silent_seconds=0)
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    await hot.append(scope, admitted("hello"))
    await hasty.settle(await hasty.claim("was killed", 10))
    await hot.append(scope, admitted("again"))
    worker: Any = archive_consumer(hasty, Taking(), "lives")  # type: ignore[arg-type]
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while (await hasty.depth()).entries:
            await asyncio.sleep(0.01)
    assert "was killed" not in await names(client)
    worker.stop()
    await running
    assert await names(client) == set()


async def test_the_queue_of_turns_forgets_names_too(server: Any, client: RedisClient) -> None:
    server.wipe()
    turns = RedisTurns(client, ttl_seconds=60)
    await client.command("XADD", QUEUE, "*", "record", "{}")
    taken = await turns.claim("one", 10)
    assert (len(taken), await turns.retire("one")) == (1, 0)
    await turns.settle(taken)
    assert (await turns.retire(), await turns.retire("one")) == (0, 1)
