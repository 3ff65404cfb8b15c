"""What stands in a database, as its own driver tells it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.contract.sql_statements import execute
from threadkeep.adapters.langgraph.pages import unsqueezed


async def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    if not url.startswith("sqlite"):
        return [tuple(row) for row in await execute(url, statement)]
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


async def tables(url: str) -> list[str]:
    """All that stand in the database, whoever made them."""
    if url.startswith("sqlite"):
        found = await rows(
            url, "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
    else:
        schema = "current_schema()" if url.startswith("postgres") else "database()"
        found = await rows(url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}")
    return [str(row[0]) for row in found]


async def every_value(url: str) -> list[bytes]:
    """Every value of every column of every table, as bytes; what is compressed also as it was before."""
    found = [value for table in await tables(url) for row in await rows(url, f"SELECT * FROM {table}") for value in row]
    plain = [value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass") for value in found]
    return [*plain, *(opened for value in plain if (opened := _decompressed(value)) is not None)]


def _decompressed(value: bytes) -> bytes | None:
    try:
        return unsqueezed(value)
    except ValueError:
        return None


async def count(url: str, table: str, user: str) -> int:
    """Rows of one user's threads."""
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    return int(str((await rows(url, f"SELECT count(*) FROM {table} WHERE thread_key IN ({keys})"))[0][0]))
