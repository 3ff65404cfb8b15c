"""The services that `bench service` asks, one a process: `python -m bench.service_apps NAME PORT [STORE [REDIS]]`.

Each answers `/agent/chat` with a model that does nothing, so that what is measured is the service and its memory. The
peers are in `bench.service_peers`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI

from threadkeep import ModelResponse, Scope
from threadkeep.http.app import create_app
from threadkeep.http.middleware import RequestLimits
from threadkeep.http.server import Server
from threadkeep.memory import Memory
from threadkeep.model import History, Receipt
from threadkeep.ports.chat import Answer, Asked, ChatReply, ChatRequest
from threadkeep.settings import Settings

REPLY = "Noted; is there anything else you would like to know about it?"
WINDOW = 20
_FOLDER = 'name = "bench"\nlanguages = ["en"]\ndefault_language = "en"\nrecalled = 0\n'


@dataclass
class NoModel:
    """Reads the window a model would be given, and keeps an answer of fixed words."""

    memory: Any

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


class NoMemory:
    """Keeps nothing and knows nothing: the same service with memory taken out."""

    keys = None

    async def append(
        self,
        scope: Scope,
        events: Any,
        key: str | None = None,
        index: str = "later",
        *,
        languages: Any = None,
    ) -> Receipt:
        return Receipt("stored", 1, ("0",), {}, {}, {})

    async def history(self, scope: Scope, limit: int | None = None, *rest: int | None) -> History:
        return History(scope, (), None)


class SilentModel:
    """A chat model that is asked by the assistant's graph, and says the same at once."""

    name = "silent"
    generates = True

    async def reply(self, request: ChatRequest) -> ChatReply:
        return ChatReply(REPLY)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        yield ChatReply(REPLY)

    async def close(self) -> None:
        """Nothing is open."""


def _settings(store: str | None, redis: str | None) -> Settings:
    """As served in production, limit of calls and worker included; but for the embedder, which the peer has not."""
    given: dict[str, Any] = {"DATABASE_URL": store} if store else {}
    return Settings(REDIS_URL=redis, embedder="none", **given)


def threadkeep(store: str, redis: str | None = None) -> FastAPI:
    return create_app(_settings(store, redis), responder_opener=lambda memory: nullcontext(NoModel(memory)))


def without_memory(store: str | None = None, redis: str | None = None) -> FastAPI:
    """The same service, route and limits; what its memory would do is not done."""
    memory: Any = NoMemory()
    opened = lambda: nullcontext(memory)  # noqa: E731
    return create_app(_settings(store, redis), opened, responder_opener=lambda _: nullcontext(NoModel(memory)))


def assistant(store: str, redis: str | None = None) -> FastAPI:
    """The assistant's whole graph, on a model that says the same at once."""
    settings = _settings(store, redis)

    @asynccontextmanager
    async def opened(memory: Memory) -> AsyncIterator[Any]:
        from threadkeep.compose.assistant import open_assistant

        with TemporaryDirectory(prefix="bench-assistant-") as folder:
            _write_folder(Path(folder))
            async with open_assistant(memory, settings, folder, model=SilentModel()) as made:
                yield made

    return create_app(settings, responder_opener=opened)


def _write_folder(folder: Path) -> None:
    (folder / "assistant.toml").write_text(_FOLDER)
    for name in ("persona.md", "prompt.txt"):
        (folder / name).write_text("You answer questions.\n")


def main(name: str, port: str, *places: str) -> None:
    from bench import service_peers

    apps = {
        "threadkeep": threadkeep,
        "assistant": assistant,
        "without memory": without_memory,
        "fastapi": service_peers.fastapi,
        "openai": service_peers.sessions,
        "openai runner": service_peers.runner,
    }
    patience: dict[str, Any] = {"timeout_keep_alive": 120}  # with clients that wait for the others
    app = apps[name](*places)
    config = uvicorn.Config(app, "127.0.0.1", int(port), log_config=None, access_log=False, **patience)
    ours = name in ("threadkeep", "assistant", "without memory")
    limits = RequestLimits(header_seconds=patience["timeout_keep_alive"]) if ours else None
    Server(config, lambda: None, limits).run()  # ours, for everybody


if __name__ == "__main__":
    main(*sys.argv[1:])
