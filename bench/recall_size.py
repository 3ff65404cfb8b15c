"""What an index takes of the disk, for each turn."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_ON_POSTGRES = """
SELECT pg_relation_size('tk_messages_by_words') + (SELECT coalesce(sum(pg_column_size(words)), 0) FROM tk_messages)
+ coalesce(pg_total_relation_size(to_regclass('tk_pgvectors')), 0), (
SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables)
"""
_PAGES = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'tk_terms%' OR name LIKE 'tk_vectors%'"


async def bytes_per_turn(url: str, turns: int) -> dict[str, float | None]:
    """Of words and vectors with their indexes, and of everything; None where the file cannot tell."""
    index, whole = _in_file(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else await _on_server(url)
    return {"index_bytes_per_turn": None if index is None else index / turns, "bytes_per_turn": whole / turns}


async def _on_server(url: str) -> tuple[int, int]:
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        index, whole = await connection.fetchrow(_ON_POSTGRES)
        return int(index), int(whole)
    finally:
        await connection.close()


def _in_file(path: str) -> tuple[int | None, int]:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            index = connection.execute(_PAGES).fetchone()[0]
        except sqlite3.OperationalError:  # built without its table of pages
            index = None
    return index, Path(path).stat().st_size
