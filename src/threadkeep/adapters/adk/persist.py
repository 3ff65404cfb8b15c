"""A session's memory record, made of what may be kept of it, and handed to a memory service."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from threading import Lock
from typing import Any

from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session

from threadkeep.adapters.adk.events import session_events
from threadkeep.adapters.adk.masking import Masked, masked_anywhere
from threadkeep.adapters.adk.memory_service import ThreadkeepMemoryService
from threadkeep.policy.session_events import session_record
from threadkeep.resilience.loop_thread import in_running_loop, log_failure, outlasting
from threadkeep.settings import load_settings

Record = dict[str, Any]
_making = Lock()
_services: dict[tuple[str, str | None], ThreadkeepMemoryService] = {}  # of the environment, open until the process ends
_behind: set[asyncio.Task[Record]] = set()  # a task without a reference may be collected before it is done


class Persisting:
    """A session on its way to memory, whether anybody awaits it or not. Awaited, it gives the session's record."""

    def __init__(self, record: Record | None, doing: asyncio.Task[Record] | None) -> None:
        self._record = record
        self._doing = doing
        self._is_awaited = False
        if doing is not None:
            _behind.add(doing)
            doing.add_done_callback(self._done)

    def __await__(self) -> Generator[Any, None, Record]:
        self._is_awaited = True
        if self._doing is None:
            return self._record or {}
            yield
        return (yield from asyncio.shield(self._doing).__await__())

    def _done(self, doing: asyncio.Task[Record]) -> None:
        _behind.discard(doing)
        if not self._is_awaited:
            log_failure(doing, "a session was not persisted")


def persist_memory_from_session(session: Session, memory_service: BaseMemoryService | None = None) -> Persisting:
    """Store what policy keeps of the session, its intent and a summary: in `memory_service`, or where `DATABASE_URL`
    and `REDIS_URL` say. Call it when a turn has ended.

    Inside a running loop it returns at once, and what fails is logged unless it is awaited; anywhere else it returns
    once all is stored. The record that an `await` gives holds user texts, media summaries and model texts, redacted as
    `memory_service` keeps them, or, where it is not ours, by the rules of the settings.
    """
    session = session.model_copy(update={"events": [*session.events], "state": {**session.state}})  # as it is now
    service = memory_service or _of_environment()
    if not isinstance(service, ThreadkeepMemoryService):
        return _persisting(_handed_over(session, service))
    begun = service.begin_remembering(session)
    if not in_running_loop():
        return Persisting(memory_record(session, begun.result()), None)
    return Persisting(None, asyncio.ensure_future(_recorded(session, begun)))


def memory_record(session: Session, masked: Masked) -> Record:
    shaped = [one for event in session.events for one in session_events(event)]
    started = session.events[0].timestamp if session.events else None
    return session_record(session.id, shaped, masked, session.state, started, session.last_update_time)


def _persisting(work: Coroutine[Any, Any, Record]) -> Persisting:
    if not in_running_loop():
        return Persisting(asyncio.run(work), None)
    return Persisting(None, asyncio.ensure_future(work))


async def _recorded(session: Session, begun: Future[Masked]) -> Record:
    return memory_record(session, await outlasting(begun))


async def _handed_over(session: Session, service: BaseMemoryService) -> Record:
    await service.add_session_to_memory(session)
    return memory_record(session, masked_anywhere())


def _of_environment() -> ThreadkeepMemoryService:
    settings = load_settings()
    place = settings.database_url, settings.redis_url
    with _making:
        if place not in _services:
            _services[place] = ThreadkeepMemoryService.from_url()
        return _services[place]
