"""The session store of a chat service: `get`, `set` and `touch` on session documents, by session id."""

from __future__ import annotations

from typing import Any

from threadkeep.events import Event, ModelResponse, UserMessage
from threadkeep.memory import Memory
from threadkeep.policy.fields import is_language_tag
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.sessions.document import DocumentMessage, as_document, read_document

DEFAULT_USER = "default"


class SessionStore:
    """Documents look as they always did; behind them every new message is appended, so none is overwritten."""

    def __init__(self, memory: Memory, user: str = DEFAULT_USER, tenant: str = DEFAULT_TENANT) -> None:
        self._memory = memory
        self._scope = Scope(tenant, user)

    async def get(self, session_id: str) -> dict[str, Any] | None:
        """The document, or None when there is no live session."""
        session = await self._memory.session(self._scope.with_conversation(session_id))
        return as_document(session) if session else None

    async def touch(self, session_id: str) -> None:
        """Create the document at once, or slide its TTL."""
        await self._memory.touch(self._scope.with_conversation(session_id))

    async def set(self, session_id: str, document: Any) -> None:
        """Store what is new in the document: the messages after those the session already ends with."""
        scope = self._scope.with_conversation(session_id)
        given = read_document(document)
        session = await self._memory.touch(scope)
        known = [(message.role, message.content) for message in session.messages]
        added = given.messages[_overlap(known, [self._as_kept(message) for message in given.messages]) :]
        if added:
            await self._memory.append(scope, [_event(message) for message in added])
        if is_language_tag(given.language) and given.language != session.language:
            await self._memory.set_language(scope, given.language)

    def _as_kept(self, message: DocumentMessage) -> tuple[str, str]:
        return message.role, self._memory.redacted(message.content)


def _overlap(known: list[tuple[str, str]], given: list[tuple[str, str]]) -> int:
    """How many messages at the start of `given` are the end of `known`."""
    longest = min(len(known), len(given))
    return next((n for n in range(longest, 0, -1) if given[:n] == known[-n:]), 0)


def _event(message: DocumentMessage) -> Event:
    kind = UserMessage if message.role == "user" else ModelResponse
    return kind(message.content, ts=message.ts)
