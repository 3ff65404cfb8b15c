"""Every surface that acknowledges a turn, in one process, on one archive and one Redis; none of them flushes.

A turn is said as `<turn> 0`; where an assistant answers, its model says `<turn> 1`.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx
import uvicorn
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types
from mcp.client.client import Client

from tests.chaos.harness import PROBE
from tests.mcp.answers import told
from tests.mcp.serving import over_http
from threadkeep import Memory, Settings, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.agent.assistant import Assistant
from threadkeep.compose import memory as opened_by_adapters
from threadkeep.compose.assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.ports.chat import ChatReply, ChatRequest, Said

_FOLDER = 'name = "desk"\nlanguages = ["en"]\ndefault_language = "en"\nrecalled = 0\n'


class Surface(Protocol):
    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        """What the surface acknowledged: how many `parts`, and the receipt's `seq` and `ids` where it tells them."""
        ...


class AnsweringModel:
    """Answers `<turn> 0` with `<turn> 1`."""

    name = "answering"
    generates = True

    async def reply(self, request: ChatRequest) -> ChatReply:
        asked = request.messages[-1]
        assert isinstance(asked, Said)
        return ChatReply(f"{asked.content.removesuffix(' 0')} 1")

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        yield await self.reply(request)

    async def close(self) -> None: ...


class AgentChat:
    """A session id is a UUID: `conversation` names one."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        body = {"sessionId": conversation, "message": f"{turn} 0"}
        answer = await self._http.post("/agent/chat", json=body)
        assert answer.raise_for_status().json()["reply"] == f"{turn} 1"
        return {}


class Conversations:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._begun: set[str] = set()

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        if conversation not in self._begun:
            begun = await self._http.post("/conversations", json={"conversation_id": conversation})
            begun.raise_for_status()
            self._begun.add(conversation)
        where, body = f"/conversations/{conversation}/messages", {"content": f"{turn} 0"}
        answer = await self._http.post(where, params={"wait": True}, json=body)
        assert answer.raise_for_status().json()["answer"]["content"] == f"{turn} 1"
        return {}


class ApiChat:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        body = {"conversation_id": conversation, "user_id": "default", "user_message": f"{turn} 0"}
        answer = await self._http.post("/api/chat", json=body)
        assert answer.raise_for_status().json()["assistant_message"] == f"{turn} 1"
        return {}


class Remember:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        receipt = told(
            await self._client.call_tool("remember", {"text": f"{turn} 0", "conversation": conversation, "key": turn})
        )
        assert len(receipt["kept"]) == 1
        return {"parts": 1, "ids": receipt["kept"]}


class AdkSession:
    def __init__(self, service: ThreadkeepSessionService) -> None:
        self._service = service
        self._open: dict[str, Session] = {}

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        session = self._open.get(conversation)
        if session is None:
            session = await self._service.create_session(app_name="desk", user_id="adk", session_id=conversation)
            self._open[conversation] = session
        for number, author in enumerate(("user", "desk")):
            part = types.Part(text=f"{turn} {number}")
            content = types.Content(role="model" if number else "user", parts=[part])
            await self._service.append_event(session, Event(author=author, invocation_id=turn, content=content))
        return {}


class OpenAISession:
    def __init__(self, url: str, redis: str) -> None:
        self._place: dict[str, Any] = {"url": url, "redis": redis}
        self._open: dict[str, ThreadkeepSession] = {}

    async def say(self, conversation: str, turn: str) -> dict[str, Any]:
        session = self._open.setdefault(conversation, ThreadkeepSession(conversation, user="openai", **self._place))
        await session.add_items(
            [{"role": role, "content": f"{turn} {n}"} for n, role in enumerate(("user", "assistant"))]
        )
        assert session.last_receipt is not None
        return {"status": session.last_receipt.status}

    async def close(self) -> None:
        for session in self._open.values():
            await session.aclose()


class Surfaces:
    def __init__(
        self, http: httpx.AsyncClient, mcp: Client, adk: ThreadkeepSessionService, openai: OpenAISession
    ) -> None:
        self.agent_chat, self.remember = AgentChat(http), Remember(mcp)
        self.conversations, self.api_chat = Conversations(http), ApiChat(http)
        self.adk, self.openai = AdkSession(adk), openai
        self._http = http

    async def queue_again(self) -> bool:
        """Whether both memories behind the surfaces write to Redis again."""
        turn = uuid.uuid4().hex
        body = {"scope": {"user": "default", "conversation": PROBE}, "events": [{"kind": "UserMessage", "text": turn}]}
        receipt = (await self._http.post("/v1/memory/append", json=body)).raise_for_status().json()
        return receipt["status"] == "queued" and (await self.openai.say(PROBE, turn))["status"] == "queued"


@asynccontextmanager
async def open_surfaces(url: str, redis: str, folder: Path) -> AsyncGenerator[Surfaces]:
    """Settings are those of the environment. The adapters open their memory themselves, here without a worker."""
    settings = Settings(DATABASE_URL=url, REDIS_URL=redis)  # type: ignore[call-arg]
    opener = partial(open_memory, url, redis=redis, worker=False, settings=settings)
    _write_assistant(folder)

    @asynccontextmanager
    async def assistant(memory: Memory) -> AsyncGenerator[Assistant]:
        async with open_assistant(memory, settings, folder, url=url, model=AnsweringModel()) as opened:
            yield opened

    opened_by_adapters.open_memory, usual = partial(open_memory, worker=False), opened_by_adapters.open_memory
    try:
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(_served(create_app(settings, opener, responder_opener=assistant)))
            http = httpx.AsyncClient(base_url=address, timeout=60, trust_env=False)
            await stack.enter_async_context(http)
            mcp = await stack.enter_async_context(over_http(address, {}))
            adk = await stack.enter_async_context(ThreadkeepSessionService.from_url(url, redis=redis))
            openai = OpenAISession(url, redis)
            stack.push_async_callback(openai.close)
            yield Surfaces(http, mcp, adk, openai)
    finally:
        opened_by_adapters.open_memory = usual


def _write_assistant(folder: Path) -> None:
    folder.mkdir()
    (folder / "assistant.toml").write_text(_FOLDER)
    for name in ("persona.md", "prompt.txt"):
        (folder / name).write_text("You answer questions.\n")


@asynccontextmanager
async def _served(app: Any) -> AsyncGenerator[str]:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
    with server.capture_signals():
        running = asyncio.create_task(server._serve([listening]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
            assert not running.done(), "the service did not start"
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listening.close()
