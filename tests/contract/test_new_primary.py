"""After a failover old connections may still lead to what was the primary: they are let go of, and the next is new."""

from __future__ import annotations

import pytest

from tests.contract.sql_statements import execute, named_database
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.adapters.langgraph import ThreadkeepStore
from threadkeep.errors import StoreReadOnly

ME = Scope("shop", "u42", "c1")


async def new_connections(url: str, *, writable: bool) -> None:
    """May write or not; connections that are there already stay as they are."""
    if url.startswith("postgres"):
        name = url.rpartition("/")[2].partition("?")[0]
        elsewhere = named_database(url, "postgres")  # where it is allowed all the time
        await execute(
            elsewhere, f"ALTER DATABASE {name} SET default_transaction_read_only = {'off' if writable else 'on'}"
        )
    else:
        await execute(url, f"SET GLOBAL tx_read_only = {int(not writable)}")


async def test_appends_go_on_with_the_first_call_once_there_is_a_primary_again(own_url: str) -> None:
    async with open_memory(own_url):
        pass  # makes the tables
    await new_connections(own_url, writable=False)
    try:
        async with open_memory(own_url) as memory:
            for _ in range(3):
                with pytest.raises(StoreReadOnly):
                    await memory.append(ME, [UserMessage("refused")])
            await new_connections(own_url, writable=True)
            assert (await memory.append(ME, [UserMessage("one")])).status == "stored"
            assert [one.content for one in (await memory.history(ME)).messages] == ["one"]
    finally:
        await new_connections(own_url, writable=True)


async def test_straight_lines_are_let_go_of_too(own_url: str) -> None:
    async with ThreadkeepStore.from_url(own_url, tenant="shop", user="u42") as store:
        await store.aput(("notes",), "before", {"text": "one"})
    await new_connections(own_url, writable=False)
    try:
        async with ThreadkeepStore.from_url(own_url, tenant="shop", user="u42") as store:
            with pytest.raises(StoreReadOnly):
                await store.aput(("notes",), "a", {"text": "refused"})
            await new_connections(own_url, writable=True)
            await store.aput(("notes",), "a", {"text": "two"})
            assert (await store.aget(("notes",), "a")) is not None
    finally:
        await new_connections(own_url, writable=True)
