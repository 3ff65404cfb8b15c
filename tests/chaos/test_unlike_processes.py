"""Processes that disagree about Redis or durability, on one archive: refused in words, or nothing is lost.

The short form opens every pairing as a library and as a command, and the other kinds of process where they must be
refused; `CHAOS=full` opens every pairing as every kind of process, and writes more beside each other.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client.client import Client

from tests.chaos.harness import FULL, PATIENT_WITH_REDIS, ROOT, Chaos, first_line, process, sized
from tests.mcp.stdio import stdio_transport
from tests.servers.redis import RedisServer
from tests.servers.waiting import wait_until_async
from threadkeep import HotStoreMismatch, Scope, Settings, UserMessage, open_memory, open_worker

WRITES = sized(25, 200)
REFUSED = "hot_store_mismatch"
ANNA = Scope(user="anna", conversation="c1")
# Appends a text, and returns whether it was acknowledged; raises for anything but a refusal in words.
Write = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What one process is told. `redis` is the archive's Redis, or "" for none."""

    redis: str
    durability: str

    def environment(self) -> dict[str, str]:
        told = {"THREADKEEP_DURABILITY": self.durability, "THREADKEEP_EMBEDDER": "none", **PATIENT_WITH_REDIS}
        return told | ({"REDIS_URL": self.redis} if self.redis else {})

    def settings(self) -> Settings:
        return Settings(durability=self.durability, embedder="none", redis_timeout_seconds=20)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def _library(url: str, setup: Setup) -> AsyncIterator[Write]:
    async with open_memory(url, redis=setup.redis, settings=setup.settings()) as memory:

        async def write(text: str) -> bool:
            try:
                await memory.append(ANNA, [UserMessage(text)])
            except HotStoreMismatch:
                return False
            return True

        yield write


@asynccontextmanager
async def _service(url: str, setup: Setup) -> AsyncIterator[Write]:
    words = ["threadkeep.cli", "serve", "--json", "--port", "0", "--url", url]
    words += ["--redis", setup.redis] if setup.redis else []
    with process(*words, **setup.environment()) as started:
        address = json.loads(await asyncio.to_thread(first_line, started))["url"]
        async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:

            async def write(text: str) -> bool:
                scope = {"user": ANNA.user, "conversation": ANNA.conversation}
                body = {"scope": scope, "events": [{"kind": "UserMessage", "text": text}]}
                answer = await client.post("/v1/memory/append", json=body)
                if answer.status_code == 503:
                    problem = answer.json()
                    assert problem["code"] == REFUSED
                    assert "REDIS_URL" in problem["detail"] or "THREADKEEP_DURABILITY" in problem["detail"]
                    ready = await client.get("/readyz")
                    assert (ready.status_code, REFUSED in ready.text) == (503, True)
                    return False
                return bool(answer.raise_for_status().json()["kept"])

            yield write


@asynccontextmanager
async def _mcp(url: str, setup: Setup) -> AsyncIterator[Write]:
    with Path(os.devnull).open("w") as log:  # noqa: ASYNC230
        transport = stdio_transport("--url", url, "--user", ANNA.user, log=log, **setup.environment())
        async with Client(transport) as client:

            async def write(text: str) -> bool:
                answer = await client.call_tool("remember", {"text": text, "conversation": ANNA.conversation})
                if answer.is_error:
                    told = answer.content[0].text  # pyright: ignore
                    assert json.loads(told)["code"] == REFUSED
                    return False
                return True

            yield write


async def _command(*words: str, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "threadkeep.cli", *words, "--json"),
        cwd=ROOT,
        env=kept | environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await running.communicate()
    return running.returncode or 0, told.decode()


@asynccontextmanager
async def _erasing(url: str, setup: Setup) -> AsyncIterator[Write]:
    """The command that writes: it erases a message that is not there."""

    async def write(text: str) -> bool:
        words = ("erase", "--url", url, "--user", ANNA.user, "--conversation", "c1", "--message-id", text, "--yes")
        code, told = await _command(*words, **setup.environment())
        assert (code == 0) or json.loads(told)["code"] == REFUSED
        return code == 0

    yield write


@asynccontextmanager
async def _worker(url: str, setup: Setup) -> AsyncIterator[Write]:
    """It appends nothing; that it starts is its answer."""

    async def write(_: str) -> bool:
        try:
            async with open_worker(url, redis=setup.redis, settings=setup.settings()) as worker:
                await worker.drain()
        except HotStoreMismatch:
            return False
        return True

    yield write


KINDS = {"library": _library, "cli": _erasing, "serve": _service, "mcp": _mcp, "worker": _worker}
SETUPS = [(redis, durability) for redis in ("redis", "none") for durability in ("fast", "durable")]


async def _texts(url: str, setup: Setup, *, redis: str) -> set[str]:
    """All that the archive holds, once what the Redis had queued has reached it.

    An entry that a process had claimed when it ended is taken over after a while.
    """
    async with open_worker(url, redis=redis, settings=setup.settings()) as worker:

        async def drained() -> bool:
            await worker.drain()
            return (await worker.lag()).entries == 0

        await wait_until_async(drained, seconds=120, what="the journal is empty")
        assert (await worker.lag()).dead == 0
    async with open_memory(url, redis="", settings=Settings()) as memory:
        records = [record async for record in memory.export(ANNA.whole_user)]
    return {message.content for record in records for message in record.messages}


def _fits(first: tuple[str, str], second: tuple[str, str], kind: str) -> bool:
    """Whether a process with `second` may write beside one with `first`, which was there before it."""
    if first[0] == "none":
        return True  # no hot store is attached: a second process with a Redis attaches its own
    if kind == "worker":
        return second[0] == "redis"
    return second == first


def _pairings() -> list[Any]:
    kinds = list(KINDS) if FULL else ["library", "cli"]
    every = [(kind, first, second) for kind in kinds for first in SETUPS for second in SETUPS]
    refused = [("redis", "fast"), ("redis", "durable")], ("none", "fast")
    others = [] if FULL else [(kind, first, refused[1]) for kind in ("serve", "mcp") for first in refused[0]]
    found = [one for one in (*every, *others) if not (one[0] == "worker" and one[2][0] == "none")]
    return [pytest.param(*one, id="-".join((one[0], *one[1], "then", *one[2]))) for one in found]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "first", "second"), _pairings())
async def test_every_pairing_is_refused_in_words_or_compatible(
    tmp_path: Path,
    new_redis: Callable[..., RedisServer],
    kind: str,
    first: tuple[str, str],
    second: tuple[str, str],
) -> None:
    redis, url = new_redis().url, f"sqlite:///{tmp_path}/archive.db"
    named = {"redis": redis, "none": ""}
    before, after = (Setup(named[one], durability) for one, durability in (first, second))
    async with _library(url, before) as there:
        assert await there("before")
        async with KINDS[kind](url, after) as write:
            acknowledged = await write("beside")
        assert acknowledged == _fits(first, second, kind)
        # A first process without Redis is refused from the moment at which a second one has attached its own.
        attached = first[0] == "none" and second[0] == "redis" and kind != "cli"
        assert await there("after") != attached
    kept = await _texts(url, after if attached else before, redis=redis)
    assert kept >= {"before"} | (set() if attached else {"after"})
    assert ("beside" in kept) == (acknowledged and kind in ("library", "serve", "mcp"))


PAIRS: dict[str, tuple[Any, tuple[str, str], Any, tuple[str, str]]] = {
    "service-beside-mcp-without-redis": (_service, ("redis", "fast"), _mcp, ("none", "fast")),
    "service-beside-mcp-that-heeds-REDIS_URL": (_service, ("redis", "fast"), _mcp, ("redis", "fast")),
    "service-beside-one-without-redis": (_service, ("redis", "fast"), _service, ("none", "fast")),
    "fast-beside-durable": (_service, ("redis", "fast"), _service, ("redis", "durable")),
    "durable-beside-fast": (_service, ("redis", "durable"), _service, ("redis", "fast")),
}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("chaos", ["postgres", "mariadb"] if FULL else ["postgres"], indirect=True)
async def test_unlike_processes_lose_nothing_they_acknowledged(
    chaos: Chaos, new_redis: Callable[..., RedisServer], pair: str
) -> None:
    redis = new_redis(appendonly=True, appendfsync="always").url
    named = {"redis": redis, "none": ""}
    open_one, first, open_other, second = PAIRS[pair]
    one_setup, other_setup = (Setup(named[setup], durability) for setup, durability in (first, second))
    acknowledged = list[str]()

    async def writing(write: Write, name: str) -> None:
        for number in range(WRITES):
            text = f"{name} {number}"
            if await write(text):
                acknowledged.append(text)

    async with open_one(chaos.url, one_setup) as one, open_other(chaos.url, other_setup) as other:
        await asyncio.gather(writing(one, "one"), writing(other, "other"))
    kept = await _texts(chaos.url, one_setup, redis=redis)
    lost = [text for text in acknowledged if text not in kept]
    print(f"{pair}: {len(acknowledged)} of {2 * WRITES} acknowledged, {len(lost)} lost")
    assert lost == []
    assert sum(text.startswith("one ") for text in acknowledged) == WRITES
    assert (second == first) == any(text.startswith("other ") for text in acknowledged)
