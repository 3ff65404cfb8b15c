"""ADK's session service on Threadkeep: one order, one writer at a time, and after a turn only what policy keeps.

ADK calls a plugin when a run has ended or failed, but not when it was cancelled by a disconnect or a timeout: `Runs`
finds those runs of this process that no task drives any more.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session

from threadkeep.adapters.adk import events
from threadkeep.adapters.adk.ledger import Head, Ledger, TurnLimits
from threadkeep.adapters.adk.session_store import Heads, Known, Masked, Reader, StoredSession, Writer, masked_at
from threadkeep.adapters.adk.state import USER, delta_of, scratch_name, state_rows
from threadkeep.adapters.sealing import Seal
from threadkeep.adapters.stores_thread import StoresThread, borrowed, last_of
from threadkeep.compose.memory import AgentStores
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings

_Task = asyncio.Task[Any]


class _Run:
    """The task that drives a run, and whether the run is over without having ended its turn.

    It is over when its task was cancelled, or has ended otherwise than with an event. A task that ends with an event
    was one step of many: `asyncio.wait_for(anext(run), …)` makes one for each, before Python 3.12. A run that nobody
    drives any further after such a step keeps others out until its lease ends.
    """

    def __init__(self, task: _Task | None) -> None:
        self.task = task
        self.over = False
        if task is not None:
            task.add_done_callback(self.note_end)

    def note_end(self, task: _Task) -> None:
        self.task = None
        self.over = task.cancelled() or task.exception() is not None or not isinstance(task.result(), Event)

    def let_go(self) -> None:
        """From here on its task's exception, if any, is for others to look at."""
        if self.task is not None:
            self.task.remove_done_callback(self.note_end)


class Runs:
    """The runs of this process that hold a turn. Thread-safe."""

    def __init__(self) -> None:
        self._driven: dict[Scope, dict[str, _Run]] = {}

    def hold(self, scope: Scope, invocation: str) -> None:
        """It is the current task that drives it."""
        self.let_go(scope, invocation)
        self._driven.setdefault(scope, {})[invocation] = _Run(_current_task())

    def holds(self, scope: Scope, invocation: str) -> bool:
        return invocation in self._driven.get(scope, ())

    def let_go(self, scope: Scope, invocation: str) -> None:
        held = self._driven.get(scope, {})
        run = held.pop(invocation, None)
        if run is not None:
            run.let_go()
        if not held:
            self._driven.pop(scope, None)

    def over(self, scope: Scope, invocation: str) -> list[str]:
        """Other runs that hold this session's turn and that no task drives any more: not the one that begins now."""
        current = _current_task()
        found: list[str] = []
        for other, run in list(self._driven.get(scope, {}).items()):
            task = run.task
            if task is not None and task.done():
                run.note_end(task)
            if other != invocation and (run.over or (task is not None and task is current)):
                found.append(other)
                self.let_go(scope, other)
        return found


def _current_task() -> _Task | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


_TRIED_AGAIN = 64  # events back; of a long session, not all are compared for every one that comes


class ThreadkeepSessionService(BaseSessionService):
    """Open one with `ThreadkeepSessionService.from_url(url)`; close it, or use it in an `async with` statement.

    A session is the conversation of that name, of that user, in `tenant`: two apps of a tenant cannot have one each
    under the same id. Calls may come from any event loop.
    """

    def __init__(
        self,
        stores: StoresThread,
        tenant: str,
        seal: Seal,
        limits: TurnLimits | None = None,
        *,
        keep_memories: bool = False,
    ) -> None:
        self._stores = stores
        self._tenant = tenant
        self._seal = seal
        self._limits = limits or TurnLimits()
        self._keep_memories = keep_memories
        self._heads = Heads()
        self._runs = Runs()
        self._closed = False

    @classmethod
    def from_url(
        cls,
        url: str | None = None,
        *,
        tenant: str | None = None,
        redis: str | None = None,
        limits: TurnLimits | None = None,
        keep_memories: bool = False,
        settings: Settings | None = None,
    ) -> Self:
        """On `sqlite:///path.db`, `postgresql://…` or `mysql://…`, opened by the first call; `redis` puts a hot store
        in front. `keep_memories` leaves messages searchable when a session is deleted."""
        seal = Seal((settings or load_settings()).slot_key)
        stores = borrowed(url, redis, settings)
        return cls(stores, tenant or DEFAULT_TENANT, seal, limits, keep_memories=keep_memories)

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Raises `AlreadyExistsError`."""
        named = session_id.strip() if session_id else ""
        scope = self._scope(user_id, named or str(uuid4()))
        return await self._stores.in_turn(scope, lambda stores: self._created(stores, scope, app_name, state))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        scope = self._scope(user_id, session_id.strip())
        await self._stores.in_turn(scope, _nothing)  # what a cancelled caller has begun to write is read, too
        return await self._stores.use(lambda stores: self._reader(stores).session(scope, app_name, config))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Without their events, oldest change first."""
        return await self._stores.use(lambda stores: self._listed(stores, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Everything of it, and what can be recalled of it too, unless the service keeps memories."""
        scope = self._scope(user_id, session_id.strip())
        await self._stores.in_turn(scope, lambda stores: self._deleted(stores, scope, app_name))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        self._scope(user_id, "-")  # checked there
        shared = await self._stores.use(
            lambda stores: self._reader(stores).shared_state(self._tenant, app_name, user_id)
        )
        return {key.removeprefix(USER): value for key, value in shared.items() if key.startswith(USER)}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Stored when it returns; the same event once more, by a caller that tries again, changes nothing.

        Raises `SessionNotFoundError`, and `StaleSessionError` before anything is written.
        """
        if events.checked(event).partial or _has_it(session, event):
            return event
        scope = self._known(session).scope
        over = self._runs.over(scope, event.invocation_id)
        try:
            await self._stores.in_turn(scope, lambda stores: self._appended(stores, session, event, over))
        except StaleSessionError:
            self._runs.let_go(scope, event.invocation_id)  # it has no turn to hold
            raise
        await super().append_event(session, event)
        session.last_update_time = event.timestamp
        return event

    async def _appended(self, stores: AgentStores, session: Session, event: Event, over: list[str]) -> None:
        """What the session knows is looked at only now: parallel branches of one run share it."""
        writer = self._writer(stores)
        for invocation in over:
            _mark(session, await writer.end_turn(self._known(session), invocation))
        known = self._known(session)
        _mark(session, await writer.append(known, event, held=self._runs.holds(known.scope, event.invocation_id)))

    def hold_turn(self, session: Session, invocation_id: str) -> None:
        """The turn does not end with an agent's last word, but with `end_turn`: several agents may speak in it.

        Where that never comes, because the task that holds it was cancelled, it ends with the next write from here.
        """
        self._runs.hold(self._known(session).scope, invocation_id)

    async def end_turn(self, session: Session, invocation_id: str) -> None:
        """Delete what was in flight, but for calls that wait for an answer. Ending twice is allowed."""
        known = self._known(session)
        self._runs.let_go(known.scope, invocation_id)
        head = await self._stores.in_turn(
            known.scope, lambda stores: self._writer(stores).end_turn(known, invocation_id)
        )
        _mark(session, head)

    async def masking(self, session: Session) -> Masked:
        """Masks a text as it would be kept in this session."""
        scope = self._known(session).scope
        return await self._stores.use(lambda stores: masked_at(stores, scope))

    async def flush(self) -> None:
        """Return once the archive has all that was appended, and it can be recalled by its meaning."""
        await self._stores.use(lambda stores: stores.memory.flushed())

    async def sweep(self) -> int:
        """Delete the expired rows of every session and return how many. No read returns an expired row before that."""
        return await self._stores.use(lambda stores: stores.rows.sweep())

    async def close(self) -> None:
        """Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            if last_of(self._stores):
                await self._stores.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _created(self, stores: AgentStores, scope: Scope, app: str, state: dict[str, Any] | None) -> Session:
        delta = delta_of(state, stores.memory.redacted, self._limits.not_persisted)
        history = await stores.memory.history(scope, 1)
        body = {
            "app": app,
            "user": scope.user,
            "n": 0,
            "updated": stores.clock().timestamp(),
            "state": delta.session,
            "scratch": sorted(delta.scratch),
            "generation": history.scope.generation or 0,
        }
        ledger = Ledger(stores.rows, stores.keep_seconds)
        if not await ledger.create(scope, body, state_rows(scope, app, delta, events.packed, stores.keep_seconds)):
            raise AlreadyExistsError(f"Session with id {scope.conversation} already exists.")
        for name, (value, seconds) in delta.scratch.items():
            await stores.memory.scratch.put(scope, scratch_name(name), value, seconds)
        created = await self._reader(stores).session(scope, app)
        assert created is not None
        return created

    async def _listed(self, stores: AgentStores, app: str, user: str | None) -> ListSessionsResponse:
        ledger, reader = Ledger(stores.rows, stores.keep_seconds), self._reader(stores)
        found = await ledger.heads(self._tenant, app, user)
        shared = {
            name: await reader.shared_state(self._tenant, app, name) for name in {body["user"] for _, body in found}
        }
        sessions = [
            Session(
                id=id_,
                app_name=app,
                user_id=body["user"],
                state=body["state"] | shared[body["user"]],
                last_update_time=body["updated"],
            )
            for id_, body in found
        ]
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    async def _deleted(self, stores: AgentStores, scope: Scope, app: str) -> None:
        ledger = Ledger(stores.rows, stores.keep_seconds)
        head = await ledger.head(scope)
        if head is None or head.body["app"] != app:
            return
        self._heads.forget(scope)
        if not self._keep_memories:
            await stores.memory.erase(scope)
        await ledger.delete(scope)

    def _reader(self, stores: AgentStores) -> Reader:
        return Reader(stores, self._seal, self._limits)

    def _writer(self, stores: AgentStores) -> Writer:
        return Writer(stores, self._seal, self._limits, self._heads)

    def _scope(self, user: str, session: str) -> Scope:
        return Scope(self._tenant, user, session)

    def _known(self, session: Session) -> Known:
        version = session.version if isinstance(session, StoredSession) else None
        return Known(self._scope(session.user_id, session.id), session.app_name, version, session.last_update_time)


async def _nothing(stores: AgentStores) -> None:
    """Done once all is done that was begun before it."""


def _mark(session: Session, head: Head | None) -> None:
    """Note the version that the session has. A session that the application made itself goes by its time."""
    if head is not None and isinstance(session, StoredSession):
        session.note_version(head.version)


def _has_it(session: Session, event: Event) -> bool:
    """Another event may have the same id, so they are compared whole."""
    return any(one == event for one in session.events[-_TRIED_AGAIN:] if one.id == event.id)
