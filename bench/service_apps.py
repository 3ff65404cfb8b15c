"""The services that `bench service` asks, one a process: `python -m bench.service_apps NAME PORT [STORE [REDIS]]`.

Each answers `/agent/chat` with a model that does nothing, so that what is measured is the service and its memory.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

from threadkeep import ModelResponse, Scope
from threadkeep.http.app import create_app
from threadkeep.memory import Memory
from threadkeep.ports.responder import Answer, Asked
from threadkeep.settings import Settings

REPLY = "Noted; is there anything else you would like to know about it?"
WINDOW = 20


@dataclass
class NoModel:
    """Reads the window a model would be given, and keeps an answer of fixed words."""

    memory: Memory

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        return None

    async def respond(self, asked: Asked) -> Answer:
        await self.memory.history(asked.scope, WINDOW)
        receipt = await self.memory.append(asked.scope, [ModelResponse(REPLY)])
        return Answer(REPLY, "en", message_id=receipt.kept[0])

    async def stream(self, asked: Asked) -> AsyncIterator[str | Answer]:
        yield await self.respond(asked)

    async def end(self, scope: Scope) -> None:
        """Nothing is left to do."""


def threadkeep(store: str, redis: str | None = None) -> FastAPI:
    """As served in production; the embedder and the limit of calls are off, which the peer does not have either."""

    @asynccontextmanager
    async def nobody(memory: Memory) -> AsyncIterator[NoModel]:
        yield NoModel(memory)

    settings = Settings(DATABASE_URL=store, REDIS_URL=redis, embedder="none", chat_rate_limit="9999999/second")
    return create_app(settings, responder_opener=nobody)


def nothing() -> FastAPI:
    """The same route with no memory at all: what the framework itself costs."""
    app = FastAPI()

    @app.post("/agent/chat")
    async def chat(request: Request) -> dict[str, Any]:
        body = await request.json()
        return {"sessionId": body["sessionId"], "language": "en", "reply": REPLY}

    return app


def openai_sessions(store: str, redis: str | None = None) -> FastAPI:
    """What one writes by hand today: FastAPI and a session of the OpenAI Agents SDK, on Redis or on SQLite."""
    app = FastAPI()
    opened: dict[str, Any] = {}

    def session(id_: str) -> Any:
        if id_ not in opened:
            opened[id_] = _openai_session(id_, store, redis)
        return opened[id_]

    @app.post("/agent/chat")
    async def chat(request: Request) -> dict[str, Any]:
        body = await request.json()
        its = session(body["sessionId"])
        await its.add_items([{"role": "user", "content": body["message"]}])
        await its.get_items(WINDOW)
        await its.add_items([{"role": "assistant", "content": REPLY}])
        return {"sessionId": body["sessionId"], "language": "en", "reply": REPLY}

    @app.post("/v1/memory/append")
    async def append(request: Request) -> dict[str, Any]:
        body = await request.json()
        items = [{"role": "user", "content": event["text"]} for event in body["events"]]
        await session(body["scope"]["conversation"]).add_items(items)
        return {"status": "stored"}

    @app.get("/v1/memory/history")
    async def history(conversation: str) -> dict[str, Any]:
        return {"messages": await session(conversation).get_items(WINDOW)}

    return app


def _openai_session(id_: str, store: str, redis: str | None) -> Any:
    if redis is None:
        from agents import SQLiteSession

        return SQLiteSession(id_, store.removeprefix("sqlite:///"))
    from agents.extensions.memory import RedisSession

    return RedisSession.from_url(id_, url=redis, ttl=3_600)


APPS: dict[str, Any] = {"threadkeep": threadkeep, "nothing": nothing, "openai": openai_sessions}


def main(name: str, port: str, *places: str) -> None:
    app = APPS[name](*places) if name != "nothing" else nothing()
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_config=None, access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
