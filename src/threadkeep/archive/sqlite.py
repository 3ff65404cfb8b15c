"""The archive on one SQLite file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from threadkeep.archive import sqlite_front
from threadkeep.archive.sqlite_append import SessionSpan, append, looked_up
from threadkeep.archive.sqlite_erase import NOT_SCRUBBED, erase, erase_piece, forget, scrub, with_pieces
from threadkeep.archive.sqlite_place import last_seq, leave_gap, place
from threadkeep.archive.sqlite_read import (
    change_conversation,
    counts,
    list_conversations,
    named_conversations,
    places_within,
    read_messages,
    read_record,
)
from threadkeep.archive.sqlite_seed import seed
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import conversation_of, moment
from threadkeep.db.sqlite_terms import TermsOf, index_waiting
from threadkeep.errors import StoreError, StoreFull
from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Receipt,
    Stats,
)
from threadkeep.ports.archive import Spot
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.fronts import Claim, Front
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.hot import Seed
from threadkeep.ports.placing import Entry, Placed
from threadkeep.ports.sessions import SessionLimits
from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

T = TypeVar("T")
_SHORT_WINDOW = 50  # messages that are read in no time
_PIECE = 64  # messages that an erase on a full disk takes at a time; a quarter of that where it is too much
_A_ROW = 200  # characters that storing a message takes the time of, besides its own


class SqliteArchive:
    """Sessions share the file: one transaction stores a message and slides the session's TTL."""

    def __init__(
        self,
        database: SqliteDatabase,
        terms_of: TermsOf,
        limits: SessionLimits | None = None,
        clock: Clock = system_clock,
        erased_texts: ErasedTexts = NO_KEY,
    ) -> None:
        self._database = database
        self._erased_texts = erased_texts
        self._terms_of = terms_of
        self._session_ttl = int((limits or SessionLimits()).ttl_seconds * 1_000_000)
        self._clock = clock
        self.claim = Claim()

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        session = SessionSpan(moment(self._clock()), self._session_ttl)
        work = partial(
            append,
            scope=scope,
            admission=admission,
            key=key,
            session=session,
            claim=self.claim,
            erased_texts=self._erased_texts,
        )
        size = sum(_A_ROW + len(draft.content) for draft in admission.drafts)
        appended = await self._database.transact(work, size=size)
        if appended.index_is_due:
            with suppress(
                Exception
            ):  # whatever it is, it is stored; what waits to be indexed is found, and taken next time
                await self._database.transact(partial(index_waiting, terms_of=self._terms_of))
        return appended.receipt

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        """See `ports.placing`. One transaction for the whole batch."""
        claim, ttl, erased = self.claim, self._session_ttl, self._erased_texts
        work = partial(place, entries=entries, terms_of=self._terms_of, session_ttl=ttl, erased_texts=erased)

        def checked(connection: sqlite3.Connection) -> Sequence[Placed]:
            claim.check_hot_store(sqlite_front.front(connection))
            return work(connection)

        return await self._database.transact(checked)

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._database.snapshot(partial(seed, scope=scope, ids=ids, key=key))

    async def last_seq(self, scope: Scope) -> int:
        return await self._database.snapshot(
            lambda connection: last_seq(connection, conversation_of(connection, scope))
        )

    async def leave_gap(self, scope: Scope, size: int) -> int:
        session = SessionSpan(moment(self._clock()), self._session_ttl)
        return await self._database.transact(
            self._as_writer(partial(leave_gap, scope=scope, size=size, session=session))
        )

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        short = wanted.limit is not None and wanted.limit <= _SHORT_WINDOW
        return await self._database.snapshot(partial(read_messages, scope=scope, wanted=wanted), short=short)

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._database.snapshot(partial(list_conversations, scope=scope, after=after, limit=limit))

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        return await self._database.snapshot(partial(named_conversations, scope=scope, names=names)) if names else []

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        await self._database.transact(self._as_writer(partial(change_conversation, scope=scope, change=change)))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        work = partial(erase, scope=scope, message_id=message_id, erased_texts=self._erased_texts)
        try:
            proof = await self._database.transact(self._as_writer(work))
        except StoreFull:
            await self._database.make_room()
            pieces = await self._erased_by_pieces(scope) if message_id is None else Counter[str]()
            await self._database.fold_log()
            proof = with_pieces(await self._database.transact(self._as_writer(work)), pieces)
        return replace(proof, stores={**proof.stores, "file": await self._scrubbed()})

    async def _erased_by_pieces(self, scope: Scope) -> Counter[str]:
        """Erase the scope's messages a few at a time, on a disk that has no room for all of them in the log at once.

        Between two pieces the log is folded: into pages that the database has already, so that takes none. What was
        erased stays so where the rest cannot be; repeat the erase then. How many rows went, by store.
        """
        gone, most = Counter[str](), _PIECE
        while True:
            await self._database.fold_log()
            try:
                piece = await self._database.transact(self._as_writer(partial(erase_piece, scope=scope, most=most)))
            except StoreFull:
                if most == 1:
                    raise
                most = max(1, most // 4)
                continue
            if not piece:
                return gone
            gone += piece

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        erased = self._erased_texts
        work = partial(forget, scope=scope, messages=messages, erased_texts=erased, texts=texts, phrases=phrases)
        proof = await self._database.transact(self._as_writer(work))
        return replace(proof, stores={**proof.stores, "file": await self._scrubbed()}) if not phrases else proof

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._database.snapshot(
            lambda connection: looked_up(connection, self._erased_texts.erased(scope, texts))
        )

    async def _scrubbed(self) -> Erased:
        """The rows are gone by now: a file that cannot be rewritten yet is reported, not raised."""
        try:
            return await self._database.maintain(scrub)
        except StoreFull:
            if not await self._database.make_room():
                return NOT_SCRUBBED
            with suppress(StoreError):
                return await self._database.maintain(scrub)
        except StoreError:
            pass
        finally:
            with suppress(StoreError):  # or the log keeps the room that a rewrite took in vain
                await self._database.fold_log()
            self._database.keep_reserve()
        return NOT_SCRUBBED

    def _as_writer(self, work: Callable[[sqlite3.Connection], T]) -> Callable[[sqlite3.Connection], T]:
        """In the same transaction: a hot store that another process attaches is seen by the next write."""
        claim = self.claim

        def checked(connection: sqlite3.Connection) -> T:
            claim.check_writer(sqlite_front.front(connection))
            return work(connection)

        return checked

    @property
    def is_ready(self) -> bool:
        return True

    @property
    def address(self) -> str:
        path = self._database.path
        return path if path == ":memory:" else str(Path(path).resolve())

    async def front(self) -> Front | None:
        return await self._database.snapshot(sqlite_front.front)

    async def attach(self, front: Front) -> Front:
        return await self._database.transact(partial(sqlite_front.attach, front_=front))

    async def note_missed(self) -> None:
        await self._database.transact(sqlite_front.note_missed)

    async def detach(self, id: str | None = None) -> bool:
        return await self._database.transact(partial(sqlite_front.detach, id=id))

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` where an append or erase would."""
        self.claim.check_writer(await self.front())

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._database.snapshot(lambda connection: counts(connection, scope, self._bytes_on_disk()))

    async def write_obstacle(self) -> HealthFinding | None:
        if not self._database.may_write():
            fix = "give the process write access to the file and its folder"
            return HealthFinding("read_only", "the archive's file can only be read", fix)
        if not self._database.has_room():
            return HealthFinding("full", "no space is left on the archive's disk", "free some, or enlarge the disk")
        return None

    async def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        for where in await self._database.snapshot(partial(places_within, scope=scope)):
            record = await self._database.snapshot(partial(read_record, place=where))
            if record is not None:  # erased since we listed it
                yield record

    async def close(self) -> None:
        await self._database.close()

    def _bytes_on_disk(self) -> int:
        paths = (Path(self._database.path + suffix) for suffix in ("", "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())
