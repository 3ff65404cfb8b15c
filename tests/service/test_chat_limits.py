"""How often one credential, or one address without a credential, may write to an assistant."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.scripted import Scripts
from tests.service.talking import is_problem
from threadkeep.http.app import create_app
from threadkeep.identity.principal import Principal
from threadkeep.settings import Settings

STRANGER, NEIGHBOUR, PROXY = "203.0.113.7", "203.0.113.8", "10.1.2.3"


async def named_in_a_header(request: Any) -> Principal:
    return Principal("shop", "ann", name=request.headers["x-key"])


def settings(database: Path, **limits: str) -> Settings:
    return Settings(DATABASE_URL=f"sqlite:///{database}", **limits)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def from_address(app: Any, address: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(address, 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        yield client


async def chat(client: httpx.AsyncClient, **headers: str) -> httpx.Response:
    """In a session of its own, so that no limit of a session is met."""
    body = {"sessionId": str(uuid.uuid4()), "message": "hello"}
    return await client.post("/agent/chat", json=body, headers=headers)


async def test_one_credential_has_one_limit_over_all_sessions_and_routes(database: Path, scripts: Scripts) -> None:
    limited = settings(database, THREADKEEP_CHAT_CALLER_RATE_LIMIT="3/minute")
    app = create_app(limited, responder_opener=scripts.opener, identify=named_in_a_header)
    mine = {"X-Key": "mine"}
    async with app.router.lifespan_context(app), from_address(app, STRANGER) as client:
        first = [await chat(client, **mine) for _ in range(2)]
        said = {"conversation_id": "c1", "user_id": "ann", "user_message": "hello"}
        third = await client.post("/api/chat", json=said, headers=mine)
        over = [
            await client.post("/api/chat", json=said, headers=mine),
            await client.post("/conversations/c1/messages", json={"content": "hello"}, headers=mine),
            await client.post("/conversations", headers=mine),
        ]
        enveloped = await chat(client, **mine)
        read = await client.get("/conversations/c1/history", headers=mine)
        others = await chat(client, **{"X-Key": "theirs"})

    assert [answer.status_code for answer in (*first, third)] == [200, 200, 200]
    assert all(is_problem(answer, 429, "rate_limited") for answer in over)
    assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in (*over, enveloped))
    assert (enveloped.status_code, enveloped.json()["code"]) == (429, "rate_limited")
    assert (read.status_code, others.status_code) == (200, 200)


async def test_without_credentials_each_address_has_a_limit(database: Path, scripts: Scripts) -> None:
    limited = settings(database, THREADKEEP_CHAT_ADDRESS_RATE_LIMIT="2/minute")
    app = create_app(limited, responder_opener=scripts.opener, loopback_only=False)
    async with (
        app.router.lifespan_context(app),
        from_address(app, STRANGER) as stranger,
        from_address(app, NEIGHBOUR) as neighbour,
    ):
        answers = [(await chat(client)).status_code for client in (stranger, stranger, stranger, neighbour)]

    assert answers == [200, 200, 429, 200]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", PROXY])
async def test_this_machine_and_trusted_proxies_have_no_limit_by_address(
    database: Path, scripts: Scripts, address: str
) -> None:
    limited = settings(
        database, THREADKEEP_CHAT_ADDRESS_RATE_LIMIT="2/minute", THREADKEEP_TRUSTED_PROXIES="10.0.0.0/8, 192.0.2.1"
    )
    app = create_app(limited, responder_opener=scripts.opener, loopback_only=False)
    async with app.router.lifespan_context(app), from_address(app, address) as client:
        answers = [(await chat(client)).status_code for _ in range(4)]

    assert answers == [200] * 4


def test_the_defaults_are_those_of_the_reference() -> None:
    found = Settings()

    assert (found.chat_rate_limit, found.chat_caller_rate_limit) == ("30/minute", "600/minute")
    assert (found.chat_address_rate_limit, found.trusted_proxies) == ("120/minute", ())
