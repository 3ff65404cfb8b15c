"""Answers that `/agent/chat` acknowledged stay though Redis is killed or frozen before anything was flushed."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.adapters.database import rows
from tests.agent.recording import RecordingModel
from tests.servers.redis import RedisServer
from tests.service.conftest import client_of
from tests.service.stores import Servers
from threadkeep import Memory, open_memory
from threadkeep.agent.assistant import Assistant
from threadkeep.compose.assistant import open_assistant
from threadkeep.compose.worker import open_worker
from threadkeep.http.app import create_app
from threadkeep.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "hotel_concierge"
QUESTIONS = ("Is there a pool?", "And a sauna?")


def killed(redis: RedisServer) -> None:
    redis.kill()


def frozen(redis: RedisServer) -> None:
    os.kill(redis.pid, signal.SIGSTOP)


def back(redis: RedisServer) -> None:
    if redis.running:
        os.kill(redis.pid, signal.SIGCONT)
    else:
        redis.restart()


@pytest.mark.parametrize("harm", [killed, frozen])
async def test_an_acknowledged_answer_stays_when_redis_goes_away_right_after_it(
    on_postgres: Servers, harm: Callable[[RedisServer], None]
) -> None:
    settings = Settings(
        DATABASE_URL=on_postgres.sql.url,  # pyright: ignore[reportCallIssue]
        REDIS_URL=on_postgres.redis.url,  # pyright: ignore[reportCallIssue]
        THREADKEEP_REDIS_TIMEOUT_SECONDS=1,  # pyright: ignore[reportCallIssue]
        THREADKEEP_EMBEDDER="none",  # pyright: ignore[reportCallIssue]
    )
    answering = RecordingModel("Yes, on the roof.", "No, I am afraid.")
    opened: list[Assistant] = []

    @asynccontextmanager
    async def responder(memory: Memory) -> AsyncGenerator[Assistant]:
        async with open_assistant(memory, settings, EXAMPLE, model=answering) as assistant:
            opened.append(assistant)
            yield assistant

    opener = partial(open_memory, on_postgres.sql.url, redis=on_postgres.redis.url, worker=False, settings=settings)
    session, replies = str(uuid4()), list[str]()
    async with client_of(create_app(settings, opener, responder_opener=responder)) as client:
        for question in QUESTIONS:
            replies.append(await said(client, session, question))
            harm(on_postgres.redis)
            await opened[0].settled()
            await asyncio.to_thread(back, on_postgres.redis)
    async with open_worker(on_postgres.sql.url, redis=on_postgres.redis.url, settings=settings) as worker:
        await worker.drain()
    async with open_memory(on_postgres.sql.url, settings=settings) as archive:
        kept = [one.content async for record in archive.export() for one in record.messages]
    assert kept == [QUESTIONS[0], replies[0], QUESTIONS[1], replies[1]]
    assert await rows(on_postgres.sql.url, "SELECT count(*) FROM tk_tombstones") == [(0,)]


async def said(client: httpx.AsyncClient, session: str, message: str) -> str:
    answer = await client.post("/agent/chat", json={"sessionId": session, "message": message})
    assert answer.status_code == 200, answer.text
    return answer.json()["reply"]
