"""Sessions on the archive's own server database: the window is read from the messages, so nothing is stored twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.locks import (
    GENERATION,
    IN_SCOPE,
    UID,
    Span,
    generation_of,
    lock_or_create,
    named,
    places,
    refuse_if_older,
    slide,
)
from threadkeep.db.rows import fitting, message_of, moment, newest_first, when
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import conversations
from threadkeep.model import Erased, HistoryRange, Message, Session
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope

_LIVE = conversations.c.session_expires_at > bindparam("now")
_SESSION = select(conversations.c.cid, conversations.c.session_started_at, conversations.c.language, GENERATION).where(
    *IN_SCOPE, _LIVE
)
_END_ONE = update(conversations).where(*IN_SCOPE, _LIVE).values(session_expires_at=0)
_END_ALL = update(conversations).where(conversations.c.uid == UID, _LIVE).values(session_expires_at=0)


class SqlSessions:
    def __init__(
        self, database: ServerDatabase, limits: SessionLimits | None = None, clock: Clock = system_clock
    ) -> None:
        limits = limits or SessionLimits()
        self._database = database
        self._ttl = int(limits.ttl_seconds * 1_000_000)
        self._window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        self._clock = clock

    async def touch(self, scope: Scope) -> Session:
        return await self._database.transact(partial(self._touch, scope=scope))

    async def _touch(self, connection: AsyncConnection, scope: Scope) -> Session:
        await self._slide(connection, scope)
        session = await self._read(connection, scope)
        assert session is not None  # its TTL has just been slid
        return session

    async def read(self, scope: Scope) -> Session | None:
        return await self._database.snapshot(partial(self._read, scope=scope))

    async def _read(self, connection: AsyncConnection, scope: Scope) -> Session | None:
        scope.require_conversation()
        values = named(scope) | places(scope) | {"now": moment(self._clock())}
        row = (await connection.execute(_SESSION, values)).one_or_none()
        if row is None:
            return None
        cid, started_at, language, generation = row
        rows = await connection.execute(newest_first(cid, self._window))
        kept = fitting([message_of(row) for row in rows], self._window)
        return Session(scope.at(int(generation)), when(started_at), tuple(reversed(kept)), language)

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        """Nothing to do: the archive stored them and slid the TTL in one transaction on the same database."""

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._database.transact(partial(self._set_language, scope=scope, language=language))

    async def _set_language(self, connection: AsyncConnection, scope: Scope, language: str) -> None:
        cid = await self._slide(connection, scope)
        await connection.execute(update(conversations).where(conversations.c.cid == cid).values(language=language))

    async def _slide(self, connection: AsyncConnection, scope: Scope) -> int:
        """The conversation, made if need be, its session alive and its TTL slid."""
        scope.require_conversation()
        span = Span(moment(self._clock()), self._ttl)
        place = await lock_or_create(connection, scope, span)
        refuse_if_older(scope, await generation_of(connection, scope))
        await slide(connection, place, span)
        return place.cid

    async def erase(self, scope: Scope) -> Erased:
        return await self._database.transact(partial(self._end, scope=scope))

    async def _end(self, connection: AsyncConnection, scope: Scope) -> Erased:
        statement = _END_ALL if scope.conversation is None else _END_ONE
        values = named(scope) | {"now": moment(self._clock())}
        ended = (await connection.execute(statement, values)).rowcount
        return Erased(found=ended, removed=ended)

    async def close(self) -> None:
        await self._database.close()
