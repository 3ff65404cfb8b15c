"""Many writers at once, on servers: `seq` stays whole, and nothing slips past an erasure."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from tests.contract.sql_stores import stores_at
from threadkeep.errors import ScopeErased
from threadkeep.model import HistoryRange
from threadkeep.scope import Scope
from threadkeep.testing.archive_placing import entry, message, placing
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest

APPENDS = 500
WRITER = """
import asyncio, sys
from threadkeep import Scope, UserMessage, open_memory

async def main(url, user, name):
    async with open_memory(url) as memory:
        for number in range({appends}):
            await memory.append(Scope("shop", user, "c1"), [UserMessage(f"{{name}} {{number}}")])

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def two_pools(sql_url: str):
    """The same database from two pools, as two processes would have it."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(stores_at(sql_url)()) for _ in range(2)]


@pytest.mark.slow
def test_two_processes_write_one_conversation_without_a_gap(sql_url: str) -> None:
    scope = new_scope()
    command = [sys.executable, "-c", WRITER.format(appends=APPENDS), sql_url, scope.user]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("a", "b")]
    for writer in writers:
        _, problem = writer.communicate(timeout=240)
        assert writer.returncode == 0, problem
    messages = asyncio.run(_everything(sql_url, scope))
    assert [m.seq for m in messages] == list(range(1, 2 * APPENDS + 1))
    for name in ("a", "b"):
        own = [m.content for m in messages if m.content.startswith(name)]
        assert own == [f"{name} {number}" for number in range(APPENDS)]


async def _everything(url: str, scope: Scope):
    async with stores_at(url)() as stores:
        return await kept(stores.archive, scope)


async def test_first_words_to_a_new_user_all_find_their_place(two_pools: list[StoresUnderTest]) -> None:
    scope = new_scope()
    names = [f"c{number % 4}" for number in range(40)]
    work = [
        say(two_pools[number % 2].archive, scope.with_conversation(name), f"text {number}")
        for number, name in enumerate(names)
    ]
    await asyncio.gather(*work)
    for name in set(names):
        messages = await kept(two_pools[0].archive, scope.with_conversation(name))
        assert [m.seq for m in messages] == list(range(1, 11))


async def test_the_same_key_from_two_processes_stores_once(two_pools: list[StoresUnderTest]) -> None:
    scope, turn = new_scope(), admitted("one", "two")
    receipts = await asyncio.gather(*(two_pools[n % 2].archive.append(scope, turn, "k1") for n in range(20)))
    assert sum(not receipt.replayed for receipt in receipts) == 1
    assert await texts(two_pools[0].archive, scope) == ["one", "two"]


@pytest.mark.parametrize("whole_user", [True, False], ids=["user", "conversation"])
@pytest.mark.parametrize("known", ["conversation", "user", "nobody"])
async def test_stamped_appends_never_outlive_an_erasure(
    two_pools: list[StoresUnderTest], whole_user: bool, known: str
) -> None:
    """First appends race too: there is no row yet of the conversation, or of the user, that could be locked."""
    one, other = two_pools
    for _ in range(6):
        scope = new_scope()
        if known != "nobody":
            await say(one.archive, scope if known == "conversation" else scope.with_conversation("other"), "one")
        stamped = (await one.archive.messages(scope, HistoryRange())).scope
        work = [say(two_pools[n % 2].archive, stamped, f"text {n}") for n in range(8)]
        erasure = other.archive.erase(scope.whole_user if whole_user else scope)
        outcomes = await asyncio.gather(*work[:4], erasure, *work[4:], return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, ScopeErased) for failure in failures), failures
        assert await texts(one.archive, scope) == []


async def test_an_erased_message_never_comes_back_from_a_race(two_pools: list[StoresUnderTest]) -> None:
    one, other = two_pools
    for _ in range(8):
        scope = new_scope()
        turn = admitted(draft("secret", "m1"))
        await asyncio.gather(one.archive.append(scope, turn), other.archive.erase(scope, "m1"))
        assert await texts(one.archive, scope) == []


@pytest.mark.slow
async def test_everything_at_once_ends_in_a_store_that_agrees_with_itself(two_pools: list[StoresUnderTest]) -> None:
    """Appends, batches, touches and erasures of the same few places; whatever deadlocks is tried again."""
    tenant = new_scope().user
    await asyncio.gather(*(_wild_worker(two_pools, tenant, seed) for seed in range(12)))
    archive = two_pools[0].archive
    for user in ("u0", "u1"):
        for item in await archive.conversations(Scope(tenant, user), None, 100):
            messages = await kept(archive, Scope(tenant, user, item.conversation))
            assert item.messages == len(messages)
            assert len({m.seq for m in messages}) == len({m.id for m in messages}) == len(messages)


async def _wild_worker(pools: list[StoresUnderTest], tenant: str, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(25):
        stores = chance.choice(pools)
        scope = Scope(tenant, f"u{chance.randrange(2)}", f"c{chance.randrange(3)}")
        match chance.randrange(8):
            case 0:
                await stores.archive.erase(chance.choice([scope, scope.whole_user]))
            case 1:
                await stores.archive.erase(scope, f"m{chance.randrange(50)}")
            case 2:
                await stores.sessions.touch(scope)
            case 3:
                batch = [
                    entry(scope, message(1_000 + chance.randrange(50), id=f"m{seed} {number} {n}")) for n in range(3)
                ]
                await placing(stores.archive).place(batch)
            case _:
                await say(stores.archive, scope, "one", "two")
