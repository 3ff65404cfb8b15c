"""Redis is killed, frozen or wiped right after answers were acknowledged, before anything was flushed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.chaos.harness import Chaos, sized, until
from tests.chaos.oracle import ClientJournal
from tests.chaos.surfaces import Surface, Surfaces, open_surfaces
from tests.servers.redis import RedisServer
from threadkeep import Settings
from threadkeep.compose.worker import OpenWorker, open_worker

PATIENT = 60
FROZEN_SECONDS = 4.0
ROUNDS_OF_A_TALK = 8
OTHERS_FOR = 30  # rounds in which the surfaces that are not in the focus take part, too
FOCUS = ("agent_chat", "remember")
OTHERS = ("conversations", "api_chat", "adk", "openai")
SURFACES = (*FOCUS, *OTHERS)
QUEUED = "queued"  # in the names of turns that no worker had seen when Redis was wiped
TALKS = 3  # of each surface in the focus, in each round


pytestmark = pytest.mark.usefixtures("surface_settings")


class Rounds:
    """In each round every conversation has a turn before Redis goes and one while it is gone."""

    def __init__(self, surfaces: Surfaces, redis: RedisServer, worker: OpenWorker, journal: ClientJournal) -> None:
        self._surfaces = surfaces
        self._redis = redis
        self._worker = worker
        self._journal = journal
        self.not_acknowledged: list[str] = []

    async def one(self, number: int, *, frozen: bool, late: bool) -> None:
        """`late`: a worker flushes once Redis is back; otherwise none does."""
        others = OTHERS if number < OTHERS_FOR else ()
        await self._all_say(number, "before", others, 1)
        for name in FOCUS if number % 2 else FOCUS[::-1]:  # either is the last before Redis goes
            await self._all_say(number, "before", [name], TALKS)
        (self._freeze if frozen else self._redis.kill)()
        began = time.monotonic()
        await self._all_say(number, "without", FOCUS, TALKS)
        await self._all_say(number, "without", others, 1)
        if frozen:
            await until(lambda: time.monotonic() - began >= FROZEN_SECONDS, seconds=PATIENT, what="it was frozen")
            os.kill(self._redis.pid, signal.SIGCONT)
        else:
            await asyncio.to_thread(self._redis.restart)
        await until(self._surfaces.queue_again, seconds=PATIENT, what="Redis is used again")
        if late:
            await self._worker.drain()

    async def wiped(self, number: int) -> None:
        """Turns that are flushed, turns right after which Redis is wiped, and turns after that."""
        await self._all_say(number, "flushed", SURFACES, 1)
        await self._worker.drain()
        await self._all_say(number, QUEUED, SURFACES, 1)
        self._redis.wipe()
        await self._all_say(number, "after", SURFACES, 1)
        await self._worker.drain()

    def _freeze(self) -> None:
        os.kill(self._redis.pid, signal.SIGSTOP)

    async def _all_say(self, number: int, when: str, names: Sequence[str], talks: int) -> None:
        epoch = number // ROUNDS_OF_A_TALK
        places = [(name, f"{name}-{epoch}-{talk}") for name in names for talk in range(talks)]
        await asyncio.gather(*(self._say(name, place, f"{place} {number}{when}") for name, place in places))

    async def _say(self, name: str, place: str, turn: str) -> None:
        surface: Surface = getattr(self._surfaces, name)
        talk = (
            str(uuid.UUID(bytes=uuid.uuid5(uuid.NAMESPACE_OID, place).bytes, version=4)) if name == FOCUS[0] else place
        )
        await self._journal.note(turn, talk, "try")
        try:
            acknowledged = await surface.say(talk, turn)
        except Exception as error:  # whatever it is: it was not acknowledged
            self.not_acknowledged.append(f"{turn}: {type(error).__name__}: {error}")
            await self._journal.note(turn, talk, "ambiguous")
        else:
            await self._journal.note(turn, talk, "ack", **acknowledged)


@asynccontextmanager
async def rounds_on(chaos: Chaos, redis: RedisServer) -> AsyncGenerator[Rounds]:
    """In the end everything is flushed."""
    async with open_worker(chaos.url, redis=redis.url, settings=Settings()) as worker:
        with ClientJournal(chaos.folder / "answers.jsonl") as journal:
            async with open_surfaces(chaos.url, redis.url, chaos.folder / "assistant") as surfaces:
                yield Rounds(surfaces, redis, worker, journal)
        await worker.drain()
    async with chaos.memory(redis.url, worker=False) as memory:
        lag = (await memory.health()).lag
        assert lag is not None
        assert (lag.entries, lag.dead) == (0, 0)


def rounds_for(chaos: Chaos) -> int:
    return sized(3, 200 if chaos.url.startswith("postgres") else 10)


@pytest.mark.goes_red_when("inferring")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("chaos", ["postgres", "mariadb", "sqlite"], indirect=True)
async def test_answers_stay_when_redis_is_killed_or_frozen_right_after_them(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis, number = new_redis(appendonly=True, appendfsync="always"), rounds_for(chaos)
    async with rounds_on(chaos, redis) as rounds:
        for one in range(number):
            await rounds.one(one, frozen=one % 4 == 1, late=one < number // 2)
    assert rounds.not_acknowledged == []
    verdict = await chaos.assert_right("gaps", "misplaced")
    print(f"{number} rounds: {verdict.line()}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("durability", ["fast", "durable"])
async def test_a_wiped_redis_costs_answers_only_in_fast_mode_and_only_what_was_queued(
    chaos: Chaos, new_redis: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    monkeypatch.setenv("THREADKEEP_DURABILITY", durability)
    redis, number = new_redis(appendonly=True, appendfsync="always"), sized(2, 10)
    async with rounds_on(chaos, redis) as rounds:
        for one in range(number):
            await rounds.wiped(one)
    assert rounds.not_acknowledged == []
    verdict = await chaos.verdict()
    print(f"{durability}, {number} wipes: {verdict.line()}")
    assert [turn for turn in verdict.lost if durability == "durable" or not turn.endswith(QUEUED)] == []
    assert verdict.complaints("lost", "gaps", "misplaced") == {}
    assert verdict.acknowledged == number * 3 * len(SURFACES)
