"""What the page tells to run on Supabase's SQL editor, run: it leaves no table of ours open, and memory works on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.sql_statements import execute, named_database
from tests.servers.server import Server
from threadkeep import Scope, UserMessage, open_memory

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "supabase.md"
NAME = "tk_supabase"
# In a database of its own every table is ours, whatever it is called.
OPEN = (
    "SELECT relname FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relrowsecurity"
)


@pytest.fixture
async def url(postgres_server: Server) -> AsyncIterator[str]:
    await execute(postgres_server.url, f"DROP DATABASE IF EXISTS {NAME}", f"CREATE DATABASE {NAME}")
    yield named_database(postgres_server.url, NAME)
    await execute(postgres_server.url, f"DROP DATABASE {NAME} WITH (FORCE)")


async def test_no_table_of_ours_is_left_open_and_memory_works_on(url: str) -> None:
    (told,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    async with open_memory(url) as memory:
        assert await execute(url, OPEN)
        await execute(url, told)
        assert await execute(url, OPEN) == []
        me = Scope("shop", "u42", "c1")
        await memory.append(me, [UserMessage("I am allergic to peanuts")])
        assert [hit.seq for hit in (await memory.recall(me, "peanuts")).hits] == [1]
