"""What a turn costs: bytes in Redis and in the database, and commands sent, measured on servers of its own.

python -m tests.chaos.cost [TURNS] [TALKS]
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from typing import Any

from tests.contract.sql_statements import execute
from tests.servers.locate import MARIADB, POSTGRES, REDIS
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.provide import need_program
from tests.servers.redis import RedisServer, client
from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory

QUESTION = "Which of these laptops has the longest battery life, {}?"
ANSWER = "The second one, {0}: about fourteen hours of office work, ten of video. " * 3


def _redis_state(url: str) -> tuple[int, int]:
    with client(url) as redis:
        info: Any = redis.info()
        return info["used_memory"], info["total_commands_processed"]


async def _questions(url: str) -> int:
    """Statements that the database has answered; PostgreSQL counts transactions only."""
    if url.startswith("mysql"):
        return int((await execute(url, "SHOW GLOBAL STATUS LIKE 'Questions'"))[0][1])
    row = await execute(url, "SELECT sum(xact_commit) FROM pg_stat_database")
    return int(row[0][0])


async def _measure(url: str, redis: str, turns: int, talks: int) -> None:
    settings = Settings()
    async with open_memory(url, redis=redis, worker=False, settings=settings) as memory:
        await memory.append(Scope(user="first", conversation="c"), [UserMessage("hello")])
        empty, commands = _redis_state(redis)
        for number in range(turns):
            scope = Scope(user=f"u{number % talks}", conversation="c")
            await memory.append(scope, [UserMessage(QUESTION.format(number)), ModelResponse(ANSWER.format(number))])
        queued, sent = _redis_state(redis)
    before = await _questions(url)
    async with open_memory(url, redis=redis, settings=settings) as memory:
        await memory.flushed(timeout=300)
        flushed, settled = _redis_state(redis)
        after, size = await _questions(url), (await memory.stats()).bytes_on_disk or 0
    print(f"{url.partition(':')[0]}: {turns} turns in {talks} talks")
    print(
        f"  Redis, queued: {(queued - empty) / turns:.0f} bytes a turn; flushed: {(flushed - empty) / talks:.0f} a talk"
    )
    print(f"  Redis commands: {(sent - commands) / turns:.2f} an append; {(settled - sent) / turns:.2f} to flush it")
    print(
        f"  database: {size / turns:.0f} bytes a turn; {(after - before) / turns:.3f} statements or transactions a turn"
    )


def main() -> None:
    turns, talks = (*map(int, sys.argv[1:]), *(10_000, 500)[len(sys.argv) - 1 :])
    with ExitStack() as servers:
        for kind, server in ((POSTGRES, PostgresServer), (MARIADB, MariaDbServer)):
            redis = servers.enter_context(RedisServer(need_program(REDIS)))
            database = servers.enter_context(server(need_program(kind)))
            asyncio.run(_measure(database.url, redis.url, turns, talks))


if __name__ == "__main__":
    main()
