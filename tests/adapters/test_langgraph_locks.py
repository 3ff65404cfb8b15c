"""Whatever writes to a thread takes the thread's row first, as a deletion does: neither waits for the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.errors import ScopeErased

pytestmark = [
    pytest.mark.parametrize("mode", ["async"], indirect=True),
    pytest.mark.parametrize("url", ["postgres"], indirect=True),
]
DEADLINE_SECONDS = 10
DELETED_WITH_IT = ("tk_turn_keys", "tk_checkpoint_writes", "conversation_checkpoints", "tk_checkpoint_items")
QUESTION, ANSWER = HumanMessage("q" * 300, id="q"), AIMessage("a" * 300, id="a")


async def put_of_messages(saver: Verbs, config: dict[str, Any]) -> None:
    await saver.put(config, {"messages": [QUESTION, ANSWER]})


async def put_that_counts_a_question(saver: Verbs, config: dict[str, Any]) -> None:
    await saver.put(config, {"messages": [QUESTION, ANSWER, HumanMessage("once more", id="more")]})


async def put_of_a_row_alone(saver: Verbs, config: dict[str, Any]) -> None:
    await saver.put(config, {"small": 1})


async def put_in_place_of_another(saver: Verbs, config: dict[str, Any]) -> None:
    await saver.put(thread("t"), {"small": 1}, id=config["configurable"]["checkpoint_id"])


async def writes_of_an_interrupt(saver: Verbs, config: dict[str, Any]) -> None:
    await saver.call("put_writes", config, [("__error__", "new"), ("__interrupt__", "first")], "task")


WRITERS = [
    put_of_messages,
    put_that_counts_a_question,
    put_of_a_row_alone,
    put_in_place_of_another,
    writes_of_an_interrupt,
]


@pytest.mark.parametrize("tool_traffic", ["keep", "turn"])
@pytest.mark.parametrize("write", WRITERS)
async def test_a_deletion_is_not_held_up_by_who_waits_for_it(
    open_saver: Open, url: str, user: str, tool_traffic: str, write: Callable[..., Awaitable[None]]
) -> None:
    """The deletion would be the one to be told of a deadlock: it looks for one at once."""
    saver = await open_saver(tool_traffic=tool_traffic)
    config = await saver.put(thread("t"), {"messages": [QUESTION]})
    await saver.call("put_writes", config, [("__error__", "old")], "task")
    async with deletion(url, user) as (connection, key):
        writing = asyncio.create_task(write(saver, config))
        await until_one_waits_for(connection, url)
        for table in DELETED_WITH_IT:
            await connection.execute(f"DELETE FROM {table} WHERE thread_key = $1", key)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await asyncio.gather(writing, return_exceptions=True)
    assert isinstance(writing.exception(), ScopeErased | None)


@asynccontextmanager
async def deletion(url: str, user: str) -> AsyncIterator[tuple[asyncpg.Connection, bytes]]:
    """As far as it has the thread's row."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET deadlock_timeout = '10ms'")
        async with connection.transaction():
            query = "SELECT thread_key FROM conversation_metadata WHERE user_id = $1 FOR UPDATE"
            yield connection, await connection.fetchval(query, user)
    finally:
        await connection.close()


async def until_one_waits_for(holder: asyncpg.Connection, url: str) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not await connection.fetchval(waiting, holder.get_server_pid()):
                await asyncio.sleep(0)
    finally:
        await connection.close()
