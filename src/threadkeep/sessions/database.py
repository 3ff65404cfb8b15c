"""Sessions in the archive's own database: the window is read from the messages, so nothing is stored twice."""

from __future__ import annotations

from functools import partial

from threadkeep.db.database import Database
from threadkeep.db.messages import (
    GENERATION,
    IN_SCOPE,
    UID,
    Span,
    fitting,
    lock_or_create,
    moment,
    newest,
    of_conversation,
    of_generation,
    of_owner,
    refuse_if_erased,
    slide,
    when,
)
from threadkeep.db.statements import Change, Steps, Verb, one_row
from threadkeep.model import Erased, HistoryRange, Session
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope

_LIVE = "session_expires_at > :now"


class DatabaseSessions:
    def __init__(self, database: Database, limits: SessionLimits | None = None, clock: Clock = system_clock) -> None:
        limits = limits or SessionLimits()
        self._database = database
        self._ttl = int(limits.ttl_seconds * 1_000_000)
        self._window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        self._clock = clock

    async def touch(self, scope: Scope) -> Session:
        return await self._database.write(partial(self._touch, scope))

    def _touch(self, scope: Scope) -> Verb[Session]:
        yield from self._slide(scope)
        session = yield from self._read(scope)
        assert session is not None  # its TTL has just been slid
        return session

    async def read(self, scope: Scope) -> Session | None:
        return await self._database.read(partial(self._read, scope), short=True)

    def _read(self, scope: Scope) -> Verb[Session | None]:
        dialect = self._database.dialect
        values = of_conversation(scope, dialect) | of_generation(scope) | {"now": moment(self._clock())}
        row = yield from one_row(
            f"SELECT cid, session_started_at, language, {GENERATION} AS generation FROM tk_conversations"  # noqa: S608
            f" WHERE {IN_SCOPE} AND {_LIVE}",
            values,
        )
        if row is None:
            return None
        cid, started_at, language, generation = row
        kept = fitting((yield from newest(cid, self._window, dialect)), self._window)
        return Session(scope.at(int(generation)), when(started_at), tuple(reversed(kept)), language)

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._database.write(partial(self._set_language, scope, language), size=0)

    def _set_language(self, scope: Scope, language: str) -> Steps:
        cid = yield from self._slide(scope)
        change = "UPDATE tk_conversations SET language = :language WHERE cid = :cid"
        yield Change(change, {"language": language, "cid": cid})

    def _slide(self, scope: Scope) -> Verb[int]:
        """The conversation, made if need be, its session alive and its TTL slid."""
        span = Span(moment(self._clock()), self._ttl)
        conversation = yield from lock_or_create(scope, span, self._database.dialect)
        yield from refuse_if_erased(scope)
        yield from slide(conversation, span)
        return conversation.cid

    async def erase(self, scope: Scope) -> Erased:
        return await self._database.write(partial(self._end, scope))

    def _end(self, scope: Scope) -> Verb[Erased]:
        dialect = self._database.dialect
        whole = scope.conversation is None
        values = of_owner(scope, dialect) if whole else of_conversation(scope, dialect)
        where = f"uid = {UID}" if whole else IN_SCOPE
        ended = yield Change(
            f"UPDATE tk_conversations SET session_expires_at = 0 WHERE {where} AND {_LIVE}",  # noqa: S608
            values | {"now": moment(self._clock())},
        )
        return Erased(found=ended, removed=ended)

    async def close(self) -> None:
        await self._database.close()
