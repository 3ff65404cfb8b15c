"""Real talk and real questions on three databases: the same ten turns are recalled, by words and vectors.

`CHAOS=full` asks five hundred questions of three talks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from itertools import groupby, islice
from pathlib import Path

import pytest

from bench.recall_sets import Archive, locomo
from tests.servers.server import Server
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.testing.drafts import a_tenant, admitted, draft

_DATA = Path(__file__).parents[3] / "shared" / "data"
_FULL = os.environ.get("CHAOS") == "full"
_TALKS, _QUESTIONS = (3, 500) if _FULL else (1, 80)
_ALIKE = 0.95

pytestmark = pytest.mark.skipif(not (_DATA / "locomo").is_dir(), reason="the open data sets are not here")


@pytest.fixture
async def memories(tmp_path: Path, postgres_server: Server, mariadb_server: Server) -> AsyncIterator[list[Memory]]:
    urls = [f"sqlite:///{tmp_path}/m.db", postgres_server.url, mariadb_server.url]
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_memory(url, settings=Settings())) for url in urls]


async def _told(memory: Memory, tenant: str, talks: Sequence[Archive]) -> None:
    """Past policy, which is the same everywhere."""
    for talk in talks:
        for name, said in groupby(talk.said, key=lambda one: one.conversation):
            drafts = [draft(one.text, one.id, role=one.role) for one in said]
            await memory._stores.archive.append(Scope(tenant, talk.name, name), admitted(*drafts))  # pyright: ignore[reportPrivateUsage]
    await memory.flushed(120)


async def _best(memory: Memory, user: Scope, question: str) -> frozenset[tuple[str, str]]:
    return frozenset((hit.conversation, hit.message_id) for hit in (await memory.recall(user, question, k=10)).hits)


@pytest.mark.timeout(3_600)
async def test_three_databases_recall_the_same_ten_turns_of_real_talk(memories: list[Memory]) -> None:
    """Of the few that may differ, the tenth and eleventh turn are worth almost the same: vectors are kept in eleven or
    in sixteen bits, and a server estimates what it would take long to count."""
    tenant, talks = a_tenant(), locomo(_DATA)[:_TALKS]
    await asyncio.gather(*(_told(memory, tenant, talks) for memory in memories))
    asked = [(Scope(tenant, talk.name), one.question) for talk in talks for one in talk.asked]
    same = 0
    for user, question in islice(asked, _QUESTIONS):
        first, *others = await asyncio.gather(*(_best(memory, user, question) for memory in memories))
        assert first
        same += all(other == first for other in others)
    print(f"{same} of {_QUESTIONS} questions have the same ten turns on SQLite, PostgreSQL and MariaDB")
    assert same >= _ALIKE * _QUESTIONS, f"{same} of {_QUESTIONS}"
