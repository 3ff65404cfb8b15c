"""ADK's memory service on Threadkeep, and the memory record of a session that is handed to one.

The service searches by words and meaning over all sessions of a user. A session says which app it belongs to; other
conversations have a row for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import Any, Self

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from threadkeep.adapters.adk.events import checked, message_in, said_in, session_events
from threadkeep.adapters.adk.ledger import Ledger
from threadkeep.adapters.adk.session_store import Masked, masked_anywhere, masked_at
from threadkeep.adapters.remembering import Remembering
from threadkeep.adapters.stores_thread import StoresThread, Work, borrowed, last_of
from threadkeep.compose.memory import AgentStores
from threadkeep.errors import InvalidInput
from threadkeep.events import Event as OurEvent
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.model import Hit
from threadkeep.policy.session_events import session_record
from threadkeep.ports.agent_rows import AgentRows, Row, place_of
from threadkeep.ports.user_data import MOST_EVIDENCE
from threadkeep.recall.candidates import MOST_CANDIDATES
from threadkeep.recall.pipeline import as_hit, in_turns, sessions_on
from threadkeep.recall.question import Question
from threadkeep.resilience.loops import in_running_loop, log_failure, outlasting
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings


async def of_app(rows: AgentRows, scope: Scope, app: str) -> None:
    """Say so, unless another app was first."""
    row = Row(_key(scope), _key(scope), b"", scope.tenant, scope.user, place_of(scope), app.encode())
    await rows.create(row)


async def is_of_app(rows: AgentRows, scope: Scope, app: str) -> bool:
    """True also for a conversation that no app has claimed."""
    head = await Ledger(rows).head(scope)
    if head is not None:
        return head.body["app"] == app
    found = await rows.get([_key(scope)])
    return not found or found[0].value == app.encode()


def _key(scope: Scope) -> bytes:
    return scope.digest("adk app of")


_AT_ONCE = 500


class ThreadkeepMemoryService(BaseMemoryService):
    """Open one with `ThreadkeepMemoryService.from_url(url)`; close it, or use it in an `async with` statement.

    What `ThreadkeepSessionService` stores can be searched at once: adding it again changes nothing. Sessions of other
    services are added by the same policy. A conversation that no app has claimed is found from every app.
    """

    def __init__(
        self, stores: StoresThread, tenant: str, most: int = 10, remembering: Remembering | None = None
    ) -> None:
        self._stores = stores
        self._tenant = tenant
        self._most = most
        self._remembering = remembering or Remembering()
        self._behind: set[Future[Any]] = set()
        self._closed = False

    @classmethod
    def from_url(
        cls,
        url: str | None = None,
        *,
        tenant: str | None = None,
        redis: str | None = None,
        most: int = 10,
        settings: Settings | None = None,
    ) -> Self:
        """`most` memories are given out by a search."""
        return cls(borrowed(url, redis, settings), tenant or DEFAULT_TENANT, most, Remembering(settings))

    async def add_session_to_memory(self, session: Session) -> None:
        """What policy keeps of it, and what outlives its turns: its intent and a summary.

        A chat model that is to write the summary is not waited for; `close` waits.
        """
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )
        summary = self._stores.begin(self._remembered(session))
        if self._remembering.uses_a_model:
            self._behind.add(summary)
            summary.add_done_callback(self._summarised)
        else:
            await asyncio.shield(asyncio.wrap_future(summary))

    def begin_remembering(self, session: Session) -> Future[Masked]:
        """All that `add_session_to_memory` does, begun without a caller who waits; how its texts are masked there."""
        scope, ours = self._scope(session.user_id, session.id), _kept_of(session.events)

        async def remembered(stores: AgentStores) -> Masked:
            if ours:
                await self._stores.one_at_a_time(scope, self._added(scope, session.app_name, ours))(stores)
            await self._remembered(session)(stores)
            return await masked_at(stores, scope)

        begun = self._stores.begin(remembered)
        self._behind.add(begun)
        begun.add_done_callback(self._behind.discard)
        return begun

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """What policy keeps of them; an event that is there already is not added twice."""
        await self._add(self._scope(user_id, session_id or _loose(app_name)), app_name, _kept_of(events))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Beside the sessions, by the same policy: metadata is not kept."""
        await self._add(self._scope(user_id, _loose(app_name)), app_name, [_as_event(entry) for entry in memories])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erased everywhere, from its session too. One that is not there is no error."""
        conversation, message_id = _parted(memory_id)
        scope = self._scope(user_id, conversation)

        async def erased(stores: AgentStores) -> None:
            if await is_of_app(stores.rows, scope, app_name):
                await stores.memory.erase(scope, message_id)

        await self._stores.use(erased)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Best first. A session whose turns are kept no longer is found by its summary and its intent: such an entry
        has `{"kind": "session_summary"}` for its metadata."""
        user = Scope(self._tenant, user_id)

        async def found(stores: AgentStores) -> list[Hit]:
            return await found_in_app(stores, user, app_name, query, self._most)

        hits = await self._stores.use(found) if query.strip() else []
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def masking(self, session: Session) -> Masked:
        """Masks a text as it would be kept in this session."""
        scope = self._scope(session.user_id, session.id)
        return await self._stores.use(lambda stores: masked_at(stores, scope))

    async def close(self) -> None:
        """Wait for what was begun, awaited or not. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            await asyncio.gather(*map(asyncio.wrap_future, tuple(self._behind)), return_exceptions=True)
            if last_of(self._stores):
                await self._stores.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _remembered(self, session: Session) -> Work[None]:
        """Of two at once the later one knows what the first has made."""
        scope = self._scope(session.user_id, session.id)
        intent, locale = session.state.get("conversation.intentSummary"), session.state.get("user.locale")

        async def kept(stores: AgentStores) -> None:
            await self._remembering.keep(stores.memory, scope, intent, locale)

        return self._stores.one_at_a_time(("summary", scope), kept)

    def _summarised(self, summary: Future[None]) -> None:
        self._behind.discard(summary)
        log_failure(summary, "a session was not summarised")

    async def _add(self, scope: Scope, app: str, ours: Sequence[OurEvent]) -> None:
        if ours:
            await self._stores.in_turn(scope, self._added(scope, app, ours))

    def _added(self, scope: Scope, app: str, ours: Sequence[OurEvent]) -> Work[None]:
        async def added(stores: AgentStores) -> None:
            await of_app(stores.rows, scope, app)
            for start in range(0, len(ours), _AT_ONCE):
                await stores.memory.append(scope, ours[start : start + _AT_ONCE])

        return added

    def _scope(self, user: str, conversation: str) -> Scope:
        return Scope(self._tenant, user, conversation)


def _kept_of(events: Sequence[Event]) -> list[OurEvent]:
    messages = [message_in(said_in(event)) for event in events if not checked(event).partial]
    return [message for message in messages if message is not None]


def _as_event(entry: MemoryEntry) -> OurEvent:
    text = "\n".join(part.text for part in entry.content.parts or [] if part.text and not part.thought)
    kind = UserMessage if entry.author in (None, "user") else ModelResponse
    return kind(text, id=entry.id, ts=_moment(entry.timestamp))


def _moment(given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        ts = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput("timestamp", "is not a time", "give it as ISO 8601") from None
    return ts if ts.tzinfo else ts.replace(tzinfo=UTC)


def _loose(app: str) -> str:
    """The conversation of memories that belong to no session."""
    return f"memories of {app}"


def _entry(hit: Hit) -> MemoryEntry:
    role = "user" if hit.role == "user" else "model"
    return MemoryEntry(
        content=types.Content(role=role, parts=[types.Part(text=hit.content)]),
        id=f"{len(hit.message_id)}:{hit.message_id}:{hit.conversation}",
        author=role,
        timestamp=hit.ts.isoformat(),
        custom_metadata={"kind": "session_summary"} if hit.why.get("session") else {},
    )


def _parted(memory_id: Any) -> tuple[str, str]:
    length, _, rest = str(memory_id).partition(":")
    if not length.isdecimal() or rest[int(length) : int(length) + 1] != ":":
        raise InvalidInput("memory_id", "is not one that search_memory gave out", "give the id of a MemoryEntry")
    return rest[int(length) + 1 :], rest[: int(length)]


_LOOKED_THROUGH = 3  # times as many as are given out: some may be another app's
_MOST_LISTED = 200  # conversations of the user, the latest
_MOST_ASKED = 50  # of them, one by one
_MOST_SUMMARIES = 1_000  # of the user's sessions, the latest


async def found_in_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Hits, best first: messages, and sessions whose messages have expired by their summaries."""
    said = await _said_in_app(stores, user, app, query, most)
    return [*islice(in_turns(said, await _sessions_of_app(stores, user, app, query, most)), most)]


async def _sessions_of_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Of which not all is there any more that the summary was made of."""
    kept = await stores.memory.reflections(user, "session", _MOST_SUMMARIES)
    found: list[Hit] = []
    for hit in map(as_hit, await asyncio.to_thread(sessions_on, Question(query), kept)):
        conversation = user.with_conversation(hit.conversation)
        if (
            len(found) < most
            and await is_of_app(stores.rows, conversation, app)
            and not await _is_whole(stores, conversation, hit)
        ):
            found.append(hit)
    return found


async def _is_whole(stores: AgentStores, conversation: Scope, summary: Hit) -> bool:
    history = await stores.memory.history(conversation, MOST_EVIDENCE)
    return {one.id for one in history.messages}.issuperset(summary.why["made_of"])


async def _said_in_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Messages of one app. Where other apps' messages filled the result, its latest conversations are searched one by
    one, and what they add comes last."""
    looked_through = most * _LOOKED_THROUGH
    recalled = await stores.memory.recall(user, query, k=looked_through)
    names = {hit.conversation for hit in recalled.hits}
    own = {name: await is_of_app(stores.rows, user.with_conversation(name), app) for name in names}
    hits = [hit for hit in recalled.hits if own[hit.conversation]]
    nothing_was_cut = len(recalled.hits) < min(looked_through, MOST_CANDIDATES)
    if len(hits) < min(most, len(recalled.hits)) and not nothing_was_cut:
        hits += await _one_by_one(stores, user, app, query, {(hit.conversation, hit.message_id) for hit in hits}, most)
    return hits[:most]


async def _one_by_one(
    stores: AgentStores, user: Scope, app: str, query: str, known: set[tuple[str, str]], most: int
) -> list[Hit]:
    more: list[Hit] = []
    async for name in _conversations(stores, user, app):
        more += (await stores.memory.recall(user, query, k=most, conversation=name)).hits
    new = [hit for hit in more if (hit.conversation, hit.message_id) not in known]
    return sorted(new, key=lambda hit: -hit.score)


async def _conversations(stores: AgentStores, user: Scope, app: str) -> AsyncIterator[str]:
    left = _MOST_ASKED
    for listed in await stores.memory.conversations(user, limit=_MOST_LISTED):
        if left and listed.messages and await is_of_app(stores.rows, user.with_conversation(listed.conversation), app):
            left -= 1
            yield listed.conversation


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
