"""Who closes a database leaves no connection of it half open."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from threadkeep.db.engine import PoolLimits
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreUnavailable

pytestmark = pytest.mark.filterwarnings("error")


@asynccontextmanager
async def silent_server() -> AsyncGenerator[int]:
    """It takes a call and says nothing."""

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
async def test_a_connection_that_was_given_up_on_is_gone_once_the_database_is_closed(kind: str) -> None:
    async with silent_server() as port:
        before = asyncio.all_tasks()
        limits = PoolLimits(connect_seconds=60, work_seconds=0.1)
        database = ServerDatabase.at(f"{kind}://ann:secret@127.0.0.1:{port}/memory", limits)
        with pytest.raises(StoreUnavailable):
            await database.open()
        await database.close()
        mine = {task for task in asyncio.all_tasks() - before if "silent_server" not in repr(task)}
        assert mine == set()
        gc.collect()
