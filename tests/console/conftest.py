"""The service on a real port, with an assistant that says back what it was told, piece by piece."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI

from threadkeep import ModelResponse, Scope
from threadkeep.errors import ModelUnavailable
from threadkeep.http.app import create_app
from threadkeep.http.mounting import mount_memory
from threadkeep.memory import Memory
from threadkeep.ports.chat import Answer, Asked
from threadkeep.settings import Settings


@dataclass
class Echo:
    """Answers with what memory holds of the message: so the page shows what was kept, not what was said."""

    memory: Memory

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        receipt = await self.memory.append(scope, [ModelResponse("Dzień dobry! W czym mogę pomóc?")])
        return Answer("Dzień dobry! W czym mogę pomóc?", "pl", "greeting", receipt.kept[0])

    async def respond(self, asked: Asked) -> Answer:
        if "be away" in asked.text:
            raise ModelUnavailable("nobody there")
        kept = (await self.memory.history(asked.scope, 1)).messages[-1].content
        receipt = await self.memory.append(asked.scope, [ModelResponse(f"You said: {kept}")])
        return Answer(f"You said: {kept}", "en", message_id=receipt.kept[0])

    async def stream(self, asked: Asked) -> AsyncIterator[str | Answer]:
        yield "You said"
        yield " <b>: …"
        yield await self.respond(asked)

    async def end(self, scope: Scope) -> None:
        """Nothing is left to do."""


@dataclass(frozen=True)
class Page:
    address: str
    server: uvicorn.Server


@asynccontextmanager
async def served(settings: Settings, *, mounted_at: str = "", proxy_adds: str = "") -> AsyncIterator[Page]:
    """The service by itself, or in an application that has mounted it; behind a proxy that takes a prefix off paths."""

    @asynccontextmanager
    async def echo(memory: Memory) -> AsyncIterator[Echo]:
        yield Echo(memory)

    if mounted_at:
        app = FastAPI()
        mount_memory(app, path=mounted_at, settings=settings, responder_opener=echo)
    else:
        app = create_app(settings, responder_opener=echo)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2, root_path=proxy_adds)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield Page(f"http://127.0.0.1:{listening.getsockname()[1]}", server)
    finally:
        server.should_exit = True
        await running


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with served(Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", embedder="none")) as running:
        yield running
