"""`session.memory` for `persist_memory_from_session`: a record goes in, the archive holds its messages."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from threadkeep.errors import InvalidInput
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.memory import Memory
from threadkeep.policy.fields import is_language_tag
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.sync import SyncMemory

_log = logging.getLogger(__name__)
_LISTS = ("user_messages", "user_media_summaries", "model_responses")


class MemoryService:
    """Upserts are idempotent: a message's id is made of its place and text, so what is stored is not stored again.

    Called from a running event loop, `upsert` returns at once and the record is stored behind it, in order; `flush`
    waits for it. Called from anywhere else it returns when the record is stored.
    """

    def __init__(self, memory: SyncMemory, user: str, tenant: str = DEFAULT_TENANT) -> None:
        self._memory = memory
        self._scope = Scope(tenant, user)
        self._last: Future[None] | None = None
        self._stored: dict[str, tuple[int | None, set[str]]] = {}  # by session: its generation, and ids

    def upsert(self, record: Mapping[str, Any]) -> None:
        """Raises `InvalidInput` when the record names no session."""
        session_id = record.get("sessionId")
        if not isinstance(session_id, str):
            raise InvalidInput("sessionId", "is missing", "a record names its session")
        scope = self._scope.with_conversation(session_id)
        before = self._last
        self._last = self._memory.start(lambda memory: self._upsert(memory, scope, record, before))
        if _in_running_loop():
            self._last.add_done_callback(_log_failure)
        else:
            self._last.result()

    def flush(self, timeout: float | None = 30) -> None:
        """Wait until every record handed in is stored; raises what the last one raised."""
        if self._last is not None:
            self._last.result(timeout)

    async def _upsert(
        self, memory: Memory, scope: Scope, record: Mapping[str, Any], before: Future[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait([asyncio.wrap_future(before)])
        known = await self._known(memory, scope)
        events = [event for event in _events_of(record) if event.id not in known]
        if events:
            await memory.append(scope, events)
            known.update(event.id for event in events if event.id)
        await _describe(memory, scope, record.get("meta") or {})

    async def _known(self, memory: Memory, scope: Scope) -> set[str]:
        """Ids that this service has stored and that were not erased since."""
        generation = (await memory.history(scope, limit=1)).scope.generation
        place = scope.require_conversation()
        if place not in self._stored or self._stored[place][0] != generation:
            self._stored[place] = (generation, set())
        return self._stored[place][1]


def _events_of(record: Mapping[str, Any]) -> list[UserMessage | ModelResponse]:
    """A record keeps three lists and not their order: questions and answers are interleaved, pair by pair."""
    texts, media, replies = (record.get(name) or () for name in _LISTS)
    questions = [UserMessage(text, id=_id("user", i, text)) for i, text in enumerate(texts)]
    questions += [_media(item, i) for i, item in enumerate(media)]
    answers = [ModelResponse(text, id=_id("model", i, text)) for i, text in enumerate(replies)]
    longest = max(len(questions), len(answers))
    pairs = ([*questions[i : i + 1], *answers[i : i + 1]] for i in range(longest))
    return [event for pair in pairs for event in pair]


def _id(kind: str, index: int, text: Any) -> str:
    """The same place and text, the same id: what is stored is not stored again, and what is erased stays erased.

    Other text in that place, as in a new talk under an old session id, is another message.
    """
    digest = hashlib.blake2b(str(text).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{kind}-{index}-{digest}"


def _media(item: Mapping[str, Any], index: int) -> UserMessage:
    given: dict[str, Any] = item.get("meta") or {}
    meta = {key: value for key, value in given.items() if value is not None}
    id_ = _id("media", index, item["summary"])
    return UserMessage(modality=item["modality"], summary=item["summary"], meta=meta, id=id_)


async def _describe(memory: Memory, scope: Scope, meta: Mapping[str, Any]) -> None:
    locale, intent = meta.get("locale"), meta.get("intent")
    if is_language_tag(locale):
        await memory.set_language(scope, locale)
    if isinstance(intent, str) and intent:
        await memory.set_intent(scope, intent)


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _log_failure(done: Future[None]) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.error("a memory record was not stored: %s", type(error).__name__)
