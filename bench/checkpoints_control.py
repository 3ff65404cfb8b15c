"""A saver that stores one short row with every call and keeps the talk in memory: what it takes more late in a talk is
LangGraph's own work, which shares the loop with every saver's calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

CONTROL = "one row, talk in memory"
_CREATE = "CREATE TABLE one_row (n INTEGER)"
_STORE = "INSERT INTO one_row VALUES (1)"


class Control(BaseCheckpointSaver[Any]):
    def __init__(self, stores: Sequence[Callable[[], Awaitable[Any]]]) -> None:
        super().__init__()
        self._store_put, self._store_writes = stores  # each on a line of its own: the calls overlap
        self._latest: dict[str, CheckpointTuple] = {}

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._latest.get(config["configurable"]["thread_id"])

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await self._store_put()
        thread = config["configurable"]["thread_id"]
        stored: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
        self._latest[thread] = CheckpointTuple(stored, checkpoint, metadata)
        return stored

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await self._store_writes()


@asynccontextmanager
async def on_postgres(url: str) -> AsyncIterator[Control]:
    async with AsyncExitStack() as stack:
        lines = [await asyncpg.connect(url) for _ in range(2)]
        for line in lines:
            stack.push_async_callback(line.close)
        await lines[0].execute(_CREATE)
        yield Control([(await line.prepare(_STORE)).fetch for line in lines])


@asynccontextmanager
async def on_mysql(url: str) -> AsyncIterator[Control]:
    there = urlsplit(url)
    settings = {"host": there.hostname, "port": there.port, "user": there.username, "password": there.password}
    async with AsyncExitStack() as stack:
        lines = [await asyncmy.connect(**settings, database=there.path[1:], autocommit=True) for _ in range(2)]
        cursors = [await stack.enter_async_context((await stack.enter_async_context(line)).cursor()) for line in lines]
        await cursors[0].execute(_CREATE)
        yield Control([partial(cursor.execute, _STORE) for cursor in cursors])
