"""A line on which nothing moves: how long a verb lets itself wait for the store behind it, in all its questions.

Nothing is timed here. What is added up is how long each question was allowed to wait that got no answer: over a silent
line it did. Of questions that wait at the same time the longest counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from tests.contract.sql_stores import prepare
from tests.servers.server import Server
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.ports.index import Near
from threadkeep.resilience import one_call
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.fault_proxy import FaultProxy

Place = Literal["redis", "database"]
Verb = Callable[[Memory, Scope], Awaitable[object]]

LIMITS: dict[Place, float] = {"redis": 0.6, "database": 1.0}
BRIEF = Settings(redis_timeout_seconds=LIMITS["redis"], store_timeout_seconds=LIMITS["database"])
SAID = [UserMessage("I keep two grey parrots at home"), ModelResponse("Noted.")]
VERBS: dict[str, Verb] = {
    "append to a new talk": lambda memory, _: memory.append(new_scope(), SAID),
    "history": lambda memory, scope: memory.history(scope, limit=100),
    "recall": lambda memory, scope: memory.recall(scope, "parrots"),
    "touch": lambda memory, scope: memory.touch(scope),
    "set_language": lambda memory, scope: memory.set_language(scope, "vi"),
    "close_conversation": lambda memory, scope: memory.close_conversation(scope),
}


@dataclass
class Waits:
    """For one store, in one verb."""

    under_way: int = 0
    in_vain: list[list[float]] = field(default_factory=list[list[float]])  # those at the same time together

    def begin(self) -> list[float]:
        if not self.under_way:
            self.in_vain.append([])
        self.under_way += 1
        return self.in_vain[-1]

    @property
    def together(self) -> float:
        return sum(max(those, default=0.0) for those in self.in_vain)

    @property
    def count(self) -> int:
        return sum(map(len, self.in_vain))


_WAITS: ContextVar[dict[Place, Waits] | None] = ContextVar("waits", default=None)  # of the verb under way


@pytest.fixture(autouse=True)
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each question was allowed that got no answer, for whoever looks."""

    class Noted(one_call.waiting):
        def __enter__(self) -> float:
            self.left = super().__enter__()
            waits = _WAITS.get() if self._part else None  # what a task asks that outlives the call is not the call's
            self.its = waits and waits["redis" if self._store.place.startswith("Redis") else "database"]
            self.together = self.its.begin() if self.its else []
            return self.left

        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
            super().__exit__(kind, error, trace)
            if self.its:
                self.its.under_way -= 1
            if isinstance(error, Exception):
                self.together.append(self.left)

    for module in ("threadkeep.db.server", "threadkeep.sessions.redis.client"):
        monkeypatch.setattr(f"{module}.waiting", Noted)


async def waits_of(verb: Verb, memory: Memory, scope: Scope) -> dict[Place, Waits]:
    found: dict[Place, Waits] = {"redis": Waits(), "database": Waits()}
    token = _WAITS.set(found)
    with suppress(StoreError):
        await verb(memory, scope)
    _WAITS.reset(token)
    return found


def line_to(url: str) -> FaultProxy:
    there = urlsplit(url)
    return FaultProxy(there.hostname or "", there.port or 0)


@asynccontextmanager
async def talks(
    verbs: Sequence[str], sql: str, redis: str | None = None
) -> AsyncIterator[dict[str, tuple[Memory, Scope]]]:
    """A memory for each verb, so that no breaker that one has opened keeps another from asking."""
    await asyncio.to_thread(prepare, sql)
    async with AsyncExitStack() as stack:
        opened: dict[str, tuple[Memory, Scope]] = {}
        for verb in verbs:
            memory = await stack.enter_async_context(open_memory(sql, redis=redis, worker=False, settings=BRIEF))
            opened[verb] = memory, new_scope()
            await begin(*opened[verb])
        yield opened


async def begin(memory: Memory, scope: Scope) -> None:
    """It does not wait for long, and the machine may be busy with other tests."""
    for _ in range(20):
        with suppress(StoreUnavailable):
            await memory.append(scope, SAID, "begun")
            return
        await asyncio.sleep(0.5)
    raise AssertionError("no store has answered for 30 seconds")


async def in_all(opened: dict[str, tuple[Memory, Scope]]) -> dict[str, dict[Place, Waits]]:
    found = await asyncio.gather(*(waits_of(VERBS[verb], *opened[verb]) for verb in opened))
    return dict(zip(opened, found, strict=True))


def too_long(found: dict[str, dict[Place, Waits]], *silent: Place) -> dict[str, dict[Place, Waits]]:
    return {
        verb: waits for verb, waits in found.items() if any(waits[one].together > LIMITS[one] + 0.001 for one in silent)
    }


async def test_no_verb_waits_for_a_silent_database_longer_than_one_question_may(sql_url: str) -> None:
    async with line_to(sql_url) as line, talks(list(VERBS), line.url_for(sql_url)) as opened:
        line.half_open()
        found = await in_all(opened)
        line.restore()
    assert not too_long(found, "database")
    assert all(waits["database"].count for waits in found.values())
    assert found["recall"]["database"].count > 1


async def test_no_verb_waits_longer_for_two_silent_stores_than_once_for_each(
    redis_server: Server, postgres_server: Server
) -> None:
    sql, redis = postgres_server.url, redis_server.url
    async with AsyncExitStack() as stack:
        line, hot = [await stack.enter_async_context(line_to(url)) for url in (sql, redis)]
        opened = await stack.enter_async_context(talks(list(VERBS), line.url_for(sql), hot.url_for(redis)))
        line.half_open()
        hot.half_open()
        found = await in_all(opened)
        line.restore()
        hot.restore()
    assert not too_long(found, "redis", "database")
    assert found["append to a new talk"]["redis"].count > 1


async def test_a_database_that_is_silent_from_the_start_is_waited_for_once_too(
    redis_server: Server, postgres_server: Server
) -> None:
    sql = postgres_server.url
    async with line_to(sql) as line:
        line.half_open()
        async with open_memory(line.url_for(sql), redis=redis_server.url, worker=False, settings=BRIEF) as memory:
            found = await waits_of(VERBS["recall"], memory, new_scope())
            line.restore()
    assert not too_long({"recall": found}, "database")
    assert found["database"].count > 1


async def test_vectors_that_take_too_long_leave_time_for_words(postgres_server: Server) -> None:
    await asyncio.to_thread(prepare, postgres_server.url)
    async with open_memory(postgres_server.url, settings=Settings(store_timeout_seconds=4)) as memory:
        scope, database = new_scope(), memory._stores.index._database  # type: ignore[attr-defined]

        async def never(*_: object) -> Sequence[Near]:
            return await database.snapshot(lambda connection: connection.execute(text("SELECT pg_sleep(600)")))

        memory._stores = replace(memory._stores, nearest=never)
        await memory.append(scope, SAID)
        found = await memory.recall(scope, "parrots")
    assert [hit.content for hit in found.hits] == ["I keep two grey parrots at home"]
    assert found.degraded


async def test_what_was_recalled_is_an_answer_also_when_nobody_can_tell_what_was_said_last(sql_url: str) -> None:
    await asyncio.to_thread(prepare, sql_url)
    async with open_memory(sql_url) as memory:
        scope, archive = new_scope(), memory._stores.archive
        await memory.append(scope, SAID)

        class Silent:
            async def messages(self, *_: object) -> object:
                raise StoreUnavailable("no answer")

            def __getattr__(self, name: str) -> Any:
                return getattr(archive, name)

        memory._stores = replace(memory._stores, archive=Silent())  # type: ignore[arg-type]
        found = await memory.recall(scope, "parrots")
        memory._stores = replace(memory._stores, archive=archive)
    assert "parrots" in found.text
    assert found.degraded


async def test_an_erase_that_a_late_redis_cut_short_says_so_and_is_made_good_by_the_next_one(
    redis_server: Server, postgres_server: Server
) -> None:
    """Each of its two answers comes in time, both together do not."""
    await asyncio.to_thread(prepare, postgres_server.url)
    async with line_to(redis_server.url) as hot:
        url = hot.url_for(redis_server.url)
        async with open_memory(postgres_server.url, redis=url, worker=False, settings=BRIEF) as memory:
            scope = new_scope()
            await begin(memory, scope)
            await asyncio.gather(*(memory.erase(new_scope()) for _ in range(4)))  # connections made, scripts known
            hot.delay(LIMITS["redis"] * 0.6)
            proof = await memory.erase(scope)
            assert (proof.complete, proof.stores["hot"].failed) == (False, 1)
            hot.restore()
            assert (await memory.history(scope)).messages == ()
            assert (await memory.erase(scope)).complete
            await memory.append(scope, SAID[:1])
            assert [one.content for one in (await memory.history(scope)).messages] == [SAID[0].text]
