"""Two messages that claim one `seq`: the later one gets a new number, and neither is lost or given up on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.contract.behind import Behind, archive_stores, behind
from tests.servers.server import Server
from threadkeep.ports.sessions import SessionLimits
from threadkeep.testing.drafts import kept, new_scope, say, texts

LIMITS = SessionLimits(max_messages=20)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def parts(request: pytest.FixtureRequest, redis_server: Server) -> AsyncIterator[Behind]:
    server: Any = None if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_server")
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(archive_stores(request.param, server and server.url)(LIMITS))
        yield await stack.enter_async_context(behind(redis_server.url, stores, "fast", LIMITS))


async def test_numbers_that_another_process_took_cost_no_message(parts: Behind) -> None:
    scope = new_scope()
    await say(parts.archive, scope, "one")
    await parts.flush()
    for number in range(3):  # past the hot store, as no process of this version may
        await say(parts.stored, scope, f"elsewhere {number}")
    for number in range(5):
        await say(parts.archive, scope, f"here {number}")
    await parts.flush()
    everything = ["one", *(f"elsewhere {n}" for n in range(3)), *(f"here {n}" for n in range(5))]
    assert sorted(await texts(parts.stored, scope)) == sorted(everything)
    assert [one for one in await parts.journal.dead() if one.entry and one.entry.scope.user == scope.user] == []
    assert await texts(parts.archive, scope) == await texts(parts.stored, scope)
    await say(parts.archive, scope, "after")
    await parts.flush()
    numbers = [one.seq for one in await kept(parts.stored, scope)]
    assert numbers == sorted(set(numbers))
    assert (await texts(parts.archive, scope))[-1] == "after"


async def test_a_replay_of_what_an_earlier_version_gave_up_on_succeeds(parts: Behind) -> None:
    scope = new_scope()
    await say(parts.archive, scope, "queued")
    await say(parts.stored, scope, "elsewhere")
    (entry,) = [one for one in await parts.journal.claim("tested", 1_000) if one.scope.user == scope.user]
    assert await parts.journal.park(entry, "another message stands under its seq")
    (letter,) = [one for one in await parts.journal.dead() if one.entry and one.entry.scope.user == scope.user]
    assert await parts.journal.replay([letter.id]) == 1
    await parts.flush()
    assert sorted(await texts(parts.stored, scope)) == ["elsewhere", "queued"]
    assert [one for one in await parts.journal.dead() if one.entry and one.entry.scope.user == scope.user] == []
