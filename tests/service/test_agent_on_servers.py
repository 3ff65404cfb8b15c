"""The assistant's routes on Redis and PostgreSQL, in four languages, and while Redis is away."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.servers.redis import client as redis_client
from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.stores import Servers
from threadkeep.http.app import create_app
from threadkeep.settings import Settings

SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
TALKS = {
    "pl": ("Mam uczulenie na orzeszki ziemne", "Co mogę zjeść na śniadanie?"),
    "vi": ("Tôi bị dị ứng đậu phộng", "Bữa sáng tôi ăn gì được?"),
    "zh-Hant": ("我對花生過敏", "早餐我可以吃什麼？"),
    "en": ("I am allergic to peanuts", "What can I have for breakfast?"),
}


def settings_of(servers: Servers) -> Settings:
    return Settings(
        DATABASE_URL=servers.sql.url,  # pyright: ignore[reportCallIssue]
        REDIS_URL=servers.redis.url,  # pyright: ignore[reportCallIssue]
        THREADKEEP_REDIS_TIMEOUT_SECONDS=2,  # pyright: ignore[reportCallIssue]
        THREADKEEP_EMBEDDER="none",  # pyright: ignore[reportCallIssue]
    )


@pytest.fixture
async def hotel(on_postgres: Servers, scripts: Scripts) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(settings_of(on_postgres), responder_opener=scripts.opener)) as client:
        yield client


async def chat(client: httpx.AsyncClient, message: str, session: str = SESSION) -> dict[str, Any]:
    answer = await client.post("/agent/chat", json={"sessionId": session, "message": message})
    assert answer.status_code == 200, answer.text
    return answer.json()


def document_at(servers: Servers, key: str) -> Any:
    with redis_client(servers.redis.url) as redis:
        return json.loads(redis.get(key))  # pyright: ignore[reportArgumentType]


async def until_ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while (await client.get("/readyz")).json().get("status") != "ok":
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("language", list(TALKS))
async def test_a_follow_up_is_answered_out_of_the_session_which_an_operator_can_read(
    hotel: httpx.AsyncClient, on_postgres: Servers, language: str
) -> None:
    first, second = TALKS[language]
    await chat(hotel, first)

    reply = await chat(hotel, second)

    assert reply["reply"] == f"After 1 questions, first {first!r}."
    document = document_at(on_postgres, f"sessions:{SESSION}")
    assert [(one["role"], one["content"]) for one in document["messages"]] == [
        ("user", first), ("assistant", "Your first question."), ("user", second), ("assistant", reply["reply"]),
    ]  # fmt: skip
    assert document["language"] == language


async def test_the_latest_turn_of_api_chat_stands_in_redis_and_reaches_the_archive(
    hotel: httpx.AsyncClient, on_postgres: Servers
) -> None:
    body = {"conversation_id": "c1", "user_id": "default", "user_message": "我最近睡不好"}
    answer = await hotel.post("/api/chat", json=body)

    latest = document_at(on_postgres, "conv:c1:latest")
    async with asyncio.timeout(60):
        while (await hotel.get("/readyz")).json()["lag"]["entries"]:
            await asyncio.sleep(0.02)

    assert (latest["user_msg"], latest["assistant_msg"]) == ("我最近睡不好", answer.json()["assistant_message"])
    assert on_postgres.stored() == 2


async def test_redis_killed_mid_conversation_costs_no_answer_and_no_history(
    hotel: httpx.AsyncClient, on_postgres: Servers
) -> None:
    await chat(hotel, "I am allergic to peanuts")
    async with asyncio.timeout(60):
        while (await hotel.get("/readyz")).json()["lag"]["entries"]:
            await asyncio.sleep(0.02)

    on_postgres.redis.kill()
    during = await chat(hotel, "What can I eat?")
    health = (await hotel.get("/agent/health")).json()
    on_postgres.redis.restart()
    await until_ready(hotel)
    after = await chat(hotel, "And drink?")
    kept = (await hotel.get(f"/conversations/{SESSION}/history", params={"limit": 100})).json()["messages"]

    assert during["reply"] == "After 1 questions, first 'I am allergic to peanuts'."
    assert (health["status"], health["stores"]) == ("degraded", {"redis": "away", "archive": "ok"})
    assert after["reply"] == "After 2 questions, first 'I am allergic to peanuts'."
    assert [one["content"] for one in kept] == [
        "I am allergic to peanuts", "Your first question.",
        "What can I eat?", during["reply"], "And drink?", after["reply"],
    ]  # fmt: skip


async def test_with_every_store_away_it_still_answers_without_memory_and_says_so_in_the_log(
    hotel: httpx.AsyncClient, on_postgres: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    await chat(hotel, "I am allergic to peanuts")
    on_postgres.redis.kill()
    on_postgres.own_sql.kill()

    reply = await chat(hotel, "What can I eat?")

    assert reply["reply"] == "Your first question."
    lines = [json.loads(message) for message in caplog.messages if message.startswith('{"event"')]
    assert [line["error"] for line in lines if line["event"] == "without_memory"]


async def test_requests_are_counted_in_redis_for_all_processes_and_here_while_it_is_away(
    hotel: httpx.AsyncClient, on_postgres: Servers, scripts: Scripts
) -> None:
    async with client_of(create_app(settings_of(on_postgres), responder_opener=scripts.opener)) as other:
        answers = [
            await client.post("/agent/chat", json={"sessionId": SESSION, "message": f"message {number}"})
            for number in range(16)
            for client in (hotel, other)
        ]
        on_postgres.redis.kill()
        away = await hotel.post("/agent/chat", json={"sessionId": SESSION, "message": "still there?"})

    assert [answer.status_code for answer in answers] == [200] * 30 + [429] * 2
    assert away.status_code == 200
