"""Memory in an application that is there already."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request

from tests.metrics.exposed import read
from tests.service.conftest import client_of
from threadkeep import Memory, ModelResponse, Scope, UserMessage
from threadkeep.errors import InvalidInput
from threadkeep.http.mounting import mount_memory
from threadkeep.identity.principal import Principal


def shop() -> FastAPI:
    app = FastAPI()

    @app.post("/chat")
    async def chat(request: Request, body: dict[str, str]) -> dict[str, str]:
        memory = getattr(app.state, "memory", None)
        if memory is not None:
            turn = [UserMessage(body["text"]), ModelResponse("Noted.")]
            await memory.append(Scope("shop", body["user"], "c1"), turn)
        return {"answer": "Noted."}

    return app


SAID = {"user": "ann", "text": "I am allergic to peanuts"}


async def test_one_line_adds_memory_and_the_answers_stay_as_they_were(database: Path) -> None:
    async with client_of(shop()) as client:
        before = await client.post("/chat", json=SAID)
    app = shop()
    mount_memory(app, f"sqlite:///{database}")
    async with client_of(app) as client:
        after = await client.post("/chat", json=SAID)
        kept = await client.get(
            "/memory/v1/memory/history", params={"tenant": "shop", "user": "ann", "conversation": "c1"}
        )
        missing = await client.post("/memory/agent/chat", json={})

    assert (before.content, before.headers) == (after.content, after.headers)
    assert [one["content"] for one in kept.json()["messages"]] == ["I am allergic to peanuts", "Noted."]
    assert missing.json().keys() == {"code", "message", "status", "traceId", "details"}


async def test_the_applications_own_lifespan_still_runs_with_memory_open(database: Path) -> None:
    seen: list[Memory] = []

    @asynccontextmanager
    async def own(app: FastAPI) -> AsyncIterator[None]:
        seen.append(app.state.memory)
        yield

    app = FastAPI(lifespan=own)
    mount_memory(app, f"sqlite:///{database}")
    async with client_of(app):
        assert (await seen[0].stats()).messages == 0


def test_a_path_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="path: does not begin with a slash; say /memory"):
        mount_memory(FastAPI(), "sqlite:///never-opened.db", path="memory")


async def test_the_application_tells_who_calls(database: Path) -> None:
    async def identify(request: Request) -> Principal:
        return Principal("shop", request.headers["x-user"])

    app = shop()
    mount_memory(app, f"sqlite:///{database}", path="/m", identify=identify)
    transport = httpx.ASGITransport(app, client=("10.0.0.7", 5))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="https://shop.example") as client,
    ):
        own = await client.post("/m/conversations", headers={"X-User": "ann"})
        talk = own.json()["conversation_id"]
        other = await client.get(f"/m/conversations/{talk}/history", headers={"X-User": "bob"})

    assert (own.status_code, other.status_code) == (201, 404)


async def test_what_the_application_appends_is_measured(database: Path) -> None:
    app = shop()
    mount_memory(app, f"sqlite:///{database}")
    async with client_of(app) as client:
        counts = []
        for _ in range(2):
            await client.post("/chat", json=SAID)
            told = read((await client.get("/memory/metrics")).text)
            counts.append(told("threadkeep_append_duration_seconds_count", status="stored"))

    assert counts[1] == counts[0] + 1
