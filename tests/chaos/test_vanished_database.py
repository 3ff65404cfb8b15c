"""The database is dropped under a running memory: turns go on as `queued`, and arrive where one is made again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.chaos.harness import Chaos, nothing_parked, until
from tests.chaos.writing import USER, Work, appending, write
from tests.contract.sql_statements import execute
from tests.servers.redis import RedisServer
from threadkeep import Settings, open_memory
from threadkeep.errors import SchemaOutdated, StoreRefused

PATIENT = 60
# MariaDB goes on with the connection and misses the tables; PostgreSQL ends it.
WHAT_TO_DO = ("DATABASE_URL", "see `threadkeep doctor`")


async def _drop(chaos: Chaos) -> None:
    name = chaos.url.rpartition("/")[2].partition("?")[0]
    forced = " WITH (FORCE)" if chaos.url.startswith("postgres") else ""
    await execute(chaos.server.url, f"DROP DATABASE {name}{forced}")


async def _create(chaos: Chaos) -> None:
    name = chaos.url.rpartition("/")[2].partition("?")[0]
    await execute(chaos.server.url, f"CREATE DATABASE {name}")


@pytest.mark.goes_red_when("forgetful", "impatient", "keyless")
async def test_a_database_that_vanishes_costs_no_turn_that_was_queued(
    chaos: Chaos, new_redis: Callable[..., RedisServer], caplog: pytest.LogCaptureFixture
) -> None:
    async with chaos.memory(new_redis().url) as memory:
        await write(appending(memory), Work(chaos.folder, "old", writers=1, turns=10))
        await memory.flushed(timeout=PATIENT)
        (chaos.folder / "old.jsonl").unlink()  # what the database held goes with it
        await _drop(chaos)
        await write(appending(memory), Work(chaos.folder, "new", writers=4, turns=20))
        await until(
            lambda: any(word in caplog.text for word in WHAT_TO_DO),
            seconds=PATIENT,
            what="the worker says what is wrong",
        )
        assert (await memory.health()).status == "degraded"
        await _create(chaos)
        await chaos.prepare()
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    verdict = await chaos.assert_right("gaps")
    assert verdict.acknowledged == 80


async def test_without_a_redis_it_is_an_error_that_names_the_setting(chaos: Chaos) -> None:
    async with open_memory(chaos.url, settings=Settings()) as memory:
        await _drop(chaos)
        with pytest.raises((StoreRefused, SchemaOutdated), match="|".join(WHAT_TO_DO)):
            await asyncio.wait_for(memory.history(USER.with_conversation("c1")), PATIENT)
        await _create(chaos)
        await chaos.prepare()
        assert (await memory.history(USER.with_conversation("c1"))).messages == ()
