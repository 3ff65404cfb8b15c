"""`session.memory` for `persist_memory_from_session`: a record goes in, the archive holds its messages."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, Protocol

from threadkeep.adapters.remembering import Remembering
from threadkeep.adapters.stores_thread import StoresThread, borrowed
from threadkeep.errors import InvalidInput
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.loop_thread import in_running_loop, log_failure, outlasting
from threadkeep.memory import Memory
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import load_settings

_LISTS = ("user_messages", "user_media_summaries", "model_responses")


class StartsWork(Protocol):
    """`SyncMemory`, or what opens a memory when it is first needed."""

    def start(self, work: Callable[[Memory], Coroutine[Any, Any, None]]) -> Future[None]: ...


class MemoryService:
    """Upserts are idempotent: a message's id is made of its place and text, so what is stored is not stored again.
    The record's intent, and a summary of what is kept of the session, outlive its messages.

    Called from a running event loop, `upsert` returns at once and the record is stored behind it, in order; `flush`
    waits for it, and `asyncio.run` does not end before. Called from anywhere else it returns when the record is stored.
    """

    def __init__(self, memory: StartsWork, user: str, tenant: str = DEFAULT_TENANT) -> None:
        self._memory = memory
        self._remembering = Remembering()
        self._scope = Scope(tenant, user)
        self._last: Future[None] | None = None
        self._stored: dict[str, tuple[int | None, set[str]]] = {}  # by session: its generation, and ids

    @classmethod
    def of_environment(cls, user: str) -> MemoryService:
        """One for each user and place that `DATABASE_URL` and `REDIS_URL` name, open until the process ends."""
        settings = load_settings()
        place = settings.database_url, settings.redis_url
        with _making:
            if place not in _opened:
                _opened[place] = _OpenedLater(borrowed(None))
            return _services.setdefault((*place, user), cls(_opened[place], user))

    def upsert(self, record: Mapping[str, Any]) -> None:
        """Raises `InvalidInput` when the record names no session."""
        session_id = record.get("sessionId")
        if not isinstance(session_id, str):
            raise InvalidInput("sessionId", "is missing", "a record names its session")
        scope = self._scope.with_conversation(session_id)
        before = self._last
        self._last = self._memory.start(lambda memory: self._upsert(memory, scope, record, before))
        if in_running_loop():
            _outlived(self._last)
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
        meta: Mapping[str, Any] = record.get("meta") or {}
        await self._remembering.keep(memory, scope, meta.get("intent"), meta.get("locale"))

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


class _OpenedLater:
    def __init__(self, stores: StoresThread) -> None:
        self._stores = stores

    def start(self, work: Callable[[Memory], Coroutine[Any, Any, None]]) -> Future[None]:
        return self._stores.begin(lambda stores: work(stores.memory))


_making = Lock()
_opened: dict[tuple[str, str | None], _OpenedLater] = {}
_services: dict[tuple[str, str | None, str], MemoryService] = {}
_behind: set[asyncio.Task[None]] = set()  # a task that nobody holds may be collected before it is done


def _outlived(storing: Future[None]) -> None:
    waiting = asyncio.ensure_future(outlasting(storing))
    _behind.add(waiting)
    waiting.add_done_callback(_stored)


def _stored(waiting: asyncio.Task[None]) -> None:
    _behind.discard(waiting)
    log_failure(waiting, "a memory record was not stored")
