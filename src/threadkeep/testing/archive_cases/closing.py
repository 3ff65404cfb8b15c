"""Closing twice is allowed; using what is closed is a typed error, never a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from threadkeep.errors import MemoryClosed
from threadkeep.model import ConversationChange, HistoryRange
from threadkeep.scope import Scope
from threadkeep.testing.drafts import found, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores

Verb = Callable[[StoresUnderTest, Scope], Awaitable[object]]


async def _first_record(stores: StoresUnderTest, scope: Scope) -> object:
    return [record async for record in stores.archive.records(scope)]


VERBS: dict[str, Verb] = {
    "append": lambda stores, scope: say(stores.archive, scope, "hello"),
    "messages": lambda stores, scope: stores.archive.messages(scope, HistoryRange()),
    "conversations": lambda stores, scope: stores.archive.conversations(scope.whole_user, None, 10),
    "change": lambda stores, scope: stores.archive.change(scope, ConversationChange(title="x")),
    "erase": lambda stores, scope: stores.archive.erase(scope),
    "stats": lambda stores, scope: stores.archive.stats(scope),
    "records": _first_record,
    "evidence": lambda stores, scope: found(stores.index, scope, "word"),
}


class ClosingCases(WithStores):
    async def test_the_archive_closes_twice_and_from_two_tasks(self, stores: StoresUnderTest) -> None:
        await say(stores.archive, new_scope(), "hello")
        await asyncio.gather(stores.archive.close(), stores.archive.close())
        await stores.archive.close()

    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
    async def test_a_verb_after_close_says_so(self, stores: StoresUnderTest, verb: Verb) -> None:
        await stores.archive.close()
        with pytest.raises(MemoryClosed):
            await verb(stores, new_scope())

    async def test_closing_while_tasks_write_and_read_leaves_no_task_hanging(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        writes = [say(stores.archive, scope, f"text {number}") for number in range(30)]
        reads = [stores.archive.messages(scope, HistoryRange()) for _ in range(30)]
        work = asyncio.gather(*writes, *reads, return_exceptions=True)
        await asyncio.sleep(0)
        await stores.archive.close()
        failures = [outcome for outcome in await work if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, MemoryClosed) for failure in failures)
