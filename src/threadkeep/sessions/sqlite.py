"""Sessions on the archive's own SQLite file: the window is read from the messages, so nothing is stored twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import (
    conversation_of,
    ensure_conversation,
    generation_of,
    moment,
    newest_messages,
    owner_of,
    refuse_if_erased,
    when,
)
from threadkeep.model import Erased, HistoryRange, Message, Session
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope


class SqliteSessions:
    def __init__(
        self, database: SqliteDatabase, limits: SessionLimits | None = None, clock: Clock = system_clock
    ) -> None:
        limits = limits or SessionLimits()
        self._database = database
        self._ttl = int(limits.ttl_seconds * 1_000_000)
        self._window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        self._clock = clock

    async def touch(self, scope: Scope) -> Session:
        return await self._database.transact(partial(self._touch, scope=scope))

    def _touch(self, connection: sqlite3.Connection, scope: Scope) -> Session:
        refuse_if_erased(connection, scope)
        ensure_conversation(connection, scope, moment(self._clock()), self._ttl)
        session = self._read(connection, scope)
        assert session is not None  # its TTL has just been slid
        return session

    async def read(self, scope: Scope) -> Session | None:
        return await self._database.snapshot(partial(self._read, scope=scope), short=True)

    def _read(self, connection: sqlite3.Connection, scope: Scope) -> Session | None:
        row: tuple[Any, ...] | None = connection.execute(
            "SELECT cid, session_started_at, language FROM tk_conversations JOIN tk_owners USING (uid)"
            " WHERE tenant = ? AND user = ? AND conversation = ? AND session_expires_at > ?",
            (scope.tenant, scope.user, scope.require_conversation(), moment(self._clock())),
        ).fetchone()
        if row is None:
            return None
        cid, started_at, language = row
        stamped = scope.at(generation_of(connection, scope))
        return Session(stamped, when(started_at), newest_messages(connection, cid, self._window), language)

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        """Nothing to do: the archive stored them and slid the TTL in one transaction on the same file."""

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._database.transact(partial(self._set_language, scope=scope, language=language), size=0)

    def _set_language(self, connection: sqlite3.Connection, scope: Scope, language: str) -> None:
        refuse_if_erased(connection, scope)
        cid = ensure_conversation(connection, scope, moment(self._clock()), self._ttl)
        connection.execute("UPDATE tk_conversations SET language = ? WHERE cid = ?", (language, cid))

    async def erase(self, scope: Scope) -> Erased:
        return await self._database.transact(partial(self._end, scope=scope))

    def _end(self, connection: sqlite3.Connection, scope: Scope) -> Erased:
        live = "session_expires_at > ?"
        if scope.conversation is None:
            target, value = "uid = ?", owner_of(connection, scope)
        else:
            target, value = "cid = ?", conversation_of(connection, scope)
        ended = connection.execute(
            f"UPDATE tk_conversations SET session_expires_at = 0 WHERE {target} AND {live}",  # noqa: S608
            (value, moment(self._clock())),
        ).rowcount
        return Erased(found=ended, removed=ended)

    async def close(self) -> None:
        await self._database.close()
