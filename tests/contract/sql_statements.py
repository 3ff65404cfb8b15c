"""A word to a server beside Threadkeep, as its administrator would have it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncpg


async def execute(url: str, *statements: str) -> list[Any]:
    """Each committed by itself; the rows of the last."""
    return await (_on_postgres if url.startswith("postgres") else _on_mysql)(url, statements)


async def _on_postgres(url: str, statements: tuple[str, ...]) -> list[Any]:
    connection = await asyncpg.connect(url.partition("?")[0], statement_cache_size=0)
    try:
        rows: list[Any] = []
        for statement in statements:
            rows = [tuple(row) for row in await connection.fetch(statement)]
        return rows
    finally:
        await connection.close()


async def _on_mysql(url: str, statements: tuple[str, ...]) -> list[Any]:
    there = urlsplit(url)
    connection = await asyncmy.connect(
        host=there.hostname or "",
        port=there.port or 3306,
        user=unquote(there.username or ""),
        password=unquote(there.password or ""),
        database=there.path.removeprefix("/"),
        autocommit=True,
    )
    async with connection, connection.cursor() as cursor:
        for statement in statements:
            await cursor.execute(statement)
        return list(await cursor.fetchall())


def named_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def as_user(url: str, user: str, password: str) -> str:
    there = urlsplit(url)
    return there._replace(netloc=f"{user}:{password}@{there.hostname}:{there.port}").geturl()
