"""Databases of a test's own on a shared server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from tests.contract.sql_statements import execute, named_database

_numbers = count(1)


@asynccontextmanager
async def own_database(url: str) -> AsyncIterator[str]:
    name = f"tk_front_{next(_numbers)}"
    await execute(url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    try:
        yield named_database(url, name)
    finally:
        forced = " WITH (FORCE)" if url.startswith("postgres") else ""
        await asyncio.shield(execute(url, f"DROP DATABASE {name}{forced}"))
