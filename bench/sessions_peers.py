"""Ours and the peers behind one small interface; each peer is called the way its own framework calls it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from typing import Any, Protocol

from agents.memory import SQLiteSession
from agents.memory.session import SessionABC
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.session import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.sessions_texts import Message

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


class Contestant(Protocol):
    """A store on a new and empty place. A conversation begins with its first append."""

    name: str
    most_messages: int | None  # where it stops, for the sake of whoever waits

    async def open(self, place: str) -> None: ...

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        """Returns once the messages are committed."""
        ...

    async def window(self, conversation: str, size: int) -> list[str]:
        """The texts of the newest `size` messages, oldest first."""
        ...

    async def durability(self) -> dict[str, str]:
        """On SQLite: as read from a connection that this store made. Elsewhere the server decides it for all: {}."""
        ...

    async def close(self) -> None: ...


def pragmas(connection: sqlite3.Connection) -> dict[str, str]:
    return {
        "journal_mode": connection.execute("PRAGMA journal_mode").fetchone()[0],
        "synchronous": SYNCHRONOUS[connection.execute("PRAGMA synchronous").fetchone()[0]],
    }


class OpenAISessions:
    """One object per session, one `add_items` per turn."""

    name = "OpenAI Agents"
    most_messages: int | None = None

    def _session(self, conversation: str) -> SessionABC:
        raise NotImplementedError

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        await self._session(conversation).add_items([{"role": role, "content": text} for role, text in messages])  # type: ignore[misc]

    async def window(self, conversation: str, size: int) -> list[str]:
        return [str(item["content"]) for item in await self._session(conversation).get_items(size)]  # type: ignore[typeddict-item]

    async def durability(self) -> dict[str, str]:
        return {}


class OpenAIAgents(OpenAISessions):
    name = "OpenAI Agents SQLiteSession"

    async def open(self, place: str) -> None:
        self._path = place
        self._sessions: dict[str, SQLiteSession] = {}

    def _session(self, conversation: str) -> SQLiteSession:
        if conversation not in self._sessions:
            self._sessions[conversation] = SQLiteSession(conversation, self._path)
        return self._sessions[conversation]

    async def durability(self) -> dict[str, str]:
        with self._session("pragmas")._locked_connection() as connection:
            return pragmas(connection)

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


class ADKSessions:
    """One `append_event` per message, as ADK's runner does it."""

    name = "Google ADK"
    most_messages: int | None = None
    _service: BaseSessionService
    _sessions: dict[str, Session]

    async def _session(self, conversation: str) -> Session:
        if conversation not in self._sessions:
            self._sessions[conversation] = await self._service.create_session(
                app_name="bench", user_id="u1", session_id=conversation
            )
        return self._sessions[conversation]

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        session = await self._session(conversation)
        for role, text in messages:
            content = Content(role="user" if role == "user" else "model", parts=[Part(text=text)])
            author = "user" if role == "user" else "assistant"
            await self._service.append_event(session, Event(author=author, invocation_id="i1", content=content))

    async def window(self, conversation: str, size: int) -> list[str]:
        found = await self._service.get_session(
            app_name="bench", user_id="u1", session_id=conversation, config=GetSessionConfig(num_recent_events=size)
        )
        assert found is not None
        return [event.content.parts[0].text or "" for event in found.events if event.content and event.content.parts]

    async def durability(self) -> dict[str, str]:
        return {}


class GoogleADK(ADKSessions):
    name = "Google ADK SqliteSessionService"

    async def open(self, place: str) -> None:
        self._service: SqliteSessionService = SqliteSessionService(place)
        self._sessions = {}

    async def durability(self) -> dict[str, str]:
        async with self._service._get_db_connection() as db:
            return await db._execute(pragmas, db._conn)  # on the thread that owns the connection

    async def close(self) -> None:
        await self._service.close()


class LangGraph:
    """`SqliteSaver`: a checkpoint with every message so far per turn. Called in place, so it pays for no thread hop."""

    name = "LangGraph SqliteSaver"
    most_messages = 1_000

    async def open(self, place: str) -> None:
        self._stack = AsyncExitStack()
        self._connection = self._stack.enter_context(closing(sqlite3.connect(place, check_same_thread=False)))
        self._saver = SqliteSaver(self._connection)
        self._saver.setup()
        self._messages: dict[str, list[BaseMessage]] = {}
        self._configs: dict[str, Any] = {}

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        kept = self._messages.setdefault(conversation, [])
        kept += [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in messages]
        start = {"configurable": {"thread_id": conversation, "checkpoint_ns": ""}}
        version = f"{len(kept):032}"
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"messages": kept},
            "channel_versions": {"messages": version},
        }
        self._configs[conversation] = self._saver.put(
            self._configs.get(conversation, start),  # type: ignore[arg-type]
            checkpoint,  # type: ignore[arg-type]
            {"source": "loop", "step": len(kept)},
            {"messages": version},
        )

    async def window(self, conversation: str, size: int) -> list[str]:
        found = self._saver.get_tuple({"configurable": {"thread_id": conversation, "checkpoint_ns": ""}})
        assert found is not None
        return [message.content for message in found.checkpoint["channel_values"]["messages"][-size:]]

    async def durability(self) -> dict[str, str]:
        return pragmas(self._connection)

    async def close(self) -> None:
        await self._stack.aclose()
