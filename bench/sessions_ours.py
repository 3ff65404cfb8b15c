"""Threadkeep as a contestant, with its redaction and without."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from bench.sessions_peers import pragmas
from bench.sessions_texts import Message
from threadkeep import ModelResponse, Scope, UserMessage, open_memory
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.policy.admit import Rules
from threadkeep.settings import Settings


@dataclass(frozen=True, slots=True)
class _Unchanged:
    text: str
    counts: dict[str, int] = field(default_factory=dict)


def _redact_nothing(text: str, language: str | None = None) -> _Unchanged:
    return _Unchanged(text)


class Threadkeep:
    """`append` redacts, stores, indexes for recall and slides the session, in one transaction."""

    name = "Threadkeep"
    most_messages = None

    async def open(self, place: str) -> None:
        self._stack = AsyncExitStack()
        self._memory = await self._stack.enter_async_context(open_memory(f"sqlite:///{place}", settings=Settings()))

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        events = [UserMessage(text) if role == "user" else ModelResponse(text) for role, text in messages]
        await self._memory.append(Scope("bench", "u1", conversation), events)

    async def window(self, conversation: str, size: int) -> list[str]:
        history = await self._memory.history(Scope("bench", "u1", conversation), limit=size)
        return [message.content for message in history.messages]

    async def durability(self) -> dict[str, str]:
        database: SqliteDatabase | None = getattr(self._memory._stores.archive, "_database", None)
        return {} if database is None else await database.maintain(pragmas)

    async def close(self) -> None:
        await self._stack.aclose()


class ThreadkeepUnredacted(Threadkeep):
    """For information: what privacy costs. There is no such setting in the product."""

    name = "Threadkeep, redaction off"

    async def open(self, place: str) -> None:
        await super().open(place)
        self._memory._rules = Rules(redactor=_redact_nothing, max_bytes=self._memory._rules.max_bytes)
