"""The archive on a database, and what SQLite adds: an index written in batches, erasing on a full disk."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from threadkeep.archive.append import append, check_writer, last_seq, looked_up
from threadkeep.archive.erase import erase, erase_piece, forget, with_pieces
from threadkeep.archive.front import attach, detach, front, note_missed, seed
from threadkeep.archive.place import leave_gap, place
from threadkeep.archive.read import (
    change_conversation,
    counts,
    list_conversations,
    named_conversations,
    read_messages,
    read_record,
    scopes_within,
)
from threadkeep.db.database import Database
from threadkeep.db.messages import Span, moment
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.statements import Verb
from threadkeep.db.terms import BATCH, COUNT_WAITING, index_waiting
from threadkeep.errors import StoreError, StoreFull
from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ConversationRecord,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Receipt,
    Stats,
)
from threadkeep.ports.archive import Entry, Placed, Spot
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import Claim, Front, Seed, SessionLimits
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

T = TypeVar("T")
TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces
_SHORT_WINDOW = 50  # messages that are read in no time
_A_ROW = 200  # characters that storing a message takes the time of, besides its own
_ERASE_SECONDS = 600.0  # a user may have a great many messages


class DatabaseArchive(ABC):
    """Sessions share the database: one transaction stores a message, its index entry and the session's new TTL."""

    def __init__(
        self,
        database: Database,
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

    @property
    def database(self) -> Database:
        return self._database

    def on(self, database: Database) -> Self:
        """Return the same archive with its verbs run by `database`, which wraps its own."""
        other = copy(self)
        other._database = database
        return other

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        scope.require_conversation()
        words = [self._words(scope, draft.content) for draft in admission.drafts]
        span, claim, erased, dialect = self._span(), self.claim, self._erased_texts, self._database.dialect
        return await self._database.write(
            lambda: append(scope, admission, words, key, span, claim, erased, dialect),
            size=sum(_A_ROW + len(draft.content) for draft in admission.drafts),
        )

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        """See `ports.archive`. One transaction for the whole batch."""
        words = [[self._words(entry.scope, message.content) for message in entry.messages] for entry in entries]
        return await self._database.write(lambda: self._place(entries, words))

    def _place(self, entries: Sequence[Entry], words: Sequence[Sequence[Sequence[int]]]) -> Verb[list[Placed]]:
        return place(entries, words, self._session_ttl, self.claim, self._erased_texts, self._database.dialect)

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._database.read(lambda: seed(scope, ids, key, self._database.dialect))

    async def last_seq(self, scope: Scope) -> int:
        return await self._database.read(lambda: last_seq(scope, self._database.dialect))

    async def leave_gap(self, scope: Scope, size: int) -> int:
        scope.require_conversation()
        span = self._span()
        return await self._write(lambda: leave_gap(scope, size, span, self._database.dialect))

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        scope.require_conversation()
        short = wanted.limit is not None and wanted.limit <= _SHORT_WINDOW
        return await self._database.read(lambda: read_messages(scope, wanted, self._database.dialect), short=short)

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._database.read(lambda: list_conversations(scope, after, limit, self._database.dialect))

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        if not names:
            return []
        return await self._database.read(lambda: named_conversations(scope, names, self._database.dialect))

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        scope.require_conversation()
        await self._write(lambda: change_conversation(scope, change, self._database.dialect))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        return await self._cleaned(await self._erased(scope, message_id))

    async def _erased(self, scope: Scope, message_id: str | None) -> ErasureProof:
        return await self._write(
            lambda: erase(scope, message_id, self._erased_texts, self._database.dialect), seconds=_ERASE_SECONDS
        )

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        proof = await self._write(
            lambda: forget(scope, messages, self._erased_texts, texts, phrases, self._database.dialect),
            seconds=_ERASE_SECONDS,
        )
        return proof if phrases else await self._cleaned(proof)

    @abstractmethod
    async def _cleaned(self, proof: ErasureProof) -> ErasureProof:
        """Remove, or report, what deleted rows leave behind. The rows are deleted by now, so raise nothing."""

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._database.read(
            lambda: looked_up(self._erased_texts.erased(scope, texts), self._database.dialect)
        )

    async def _write(self, verb: Callable[[], Verb[T]], *, seconds: float | None = None) -> T:
        """In the same transaction: a hot store that another process attaches is seen by the next write."""

        def checked() -> Verb[T]:
            check_writer(self.claim, (yield from front()))
            return (yield from verb())

        return await self._database.write(checked, seconds=seconds)

    @property
    @abstractmethod
    def is_ready(self) -> bool: ...

    @property
    @abstractmethod
    def address(self) -> str: ...

    @abstractmethod
    async def write_obstacle(self) -> HealthFinding | None: ...

    async def front(self) -> Front | None:
        return await self._database.read(front)

    async def attach(self, front: Front) -> Front:
        return await self._database.write(lambda: attach(front, self._database.dialect))

    async def note_missed(self) -> None:
        await self._database.write(note_missed)

    async def detach(self, id: str | None = None) -> bool:
        return await self._database.write(partial(detach, id))

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` where an append or erase would."""
        check_writer(self.claim, await self.front())

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._database.read(lambda: counts(scope, self._database.dialect))

    async def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        for names in await self._database.read(lambda: scopes_within(scope, self._database.dialect)):
            record = await self._database.read(lambda names=names: read_record(names, self._database.dialect))
            if record is not None:  # erased since we listed it
                yield record

    async def close(self) -> None:
        await self._database.close()

    def _span(self) -> Span:
        return Span(moment(self._clock()), self._session_ttl)

    def _words(self, scope: Scope, content: str) -> Sequence[int]:
        """What a server's index finds the message by. SQLite indexes messages later, a batch at a time."""
        return ()


_PIECE = 64  # messages that an erase on a full disk takes at a time; a quarter of that where it is too much
_WAL_PATIENCE_MS = 5_000
_NOT_SCRUBBED = Erased(found=1, failed=1)


class SqliteArchive(DatabaseArchive):
    def __init__(
        self,
        database: SqliteDatabase,
        terms_of: TermsOf,
        limits: SessionLimits | None = None,
        clock: Clock = system_clock,
        erased_texts: ErasedTexts = NO_KEY,
    ) -> None:
        super().__init__(database, terms_of, limits, clock, erased_texts)
        self._file = database
        self._waiting = BATCH  # messages that are not indexed, of which this process knows: at first it counts them
        self._counted = False

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        receipt = await super().append(scope, admission, key)
        if receipt.new:
            self._waiting += len(receipt.new)
            if self._waiting >= BATCH or self._file.is_short_of_room:
                with suppress(Exception):  # the messages are stored; a search reads those that wait beside the index
                    await self._index_when_due()
        return receipt

    async def _index_when_due(self) -> None:
        if not self._counted:
            ((self._waiting,),) = await self._database.rows(COUNT_WAITING)
            self._counted = True
        if self._waiting >= BATCH or self._file.is_short_of_room:
            self._waiting = 0
            await self._database.write(partial(index_waiting, self._terms_of))

    def _place(self, entries: Sequence[Entry], words: Sequence[Sequence[Sequence[int]]]) -> Verb[list[Placed]]:
        """A batch is worth indexing at once."""
        placed = yield from super()._place(entries, words)
        yield from index_waiting(self._terms_of)
        return placed

    async def _erased(self, scope: Scope, message_id: str | None) -> ErasureProof:
        try:
            return await super()._erased(scope, message_id)
        except StoreFull:
            await self._file.make_room()
            pieces = await self._erased_by_pieces(scope) if message_id is None else Counter[str]()
            await self._file.fold_log()
            return with_pieces(await super()._erased(scope, message_id), pieces)

    async def _erased_by_pieces(self, scope: Scope) -> Counter[str]:
        """Erase the scope's messages a few at a time, on a disk that has no room for all of them in the log at once.

        Between two pieces the log is folded: into pages that the database has already, so that takes none. What was
        erased stays so where the rest cannot be; repeat the erase then. How many rows went, by store.
        """
        gone, most = Counter[str](), _PIECE
        while True:
            await self._file.fold_log()
            try:
                piece = await self._write(partial(erase_piece, scope, most, self._file.dialect))
            except StoreFull:
                if most == 1:
                    raise
                most = max(1, most // 4)
                continue
            if not piece:
                return gone
            gone += piece

    async def _cleaned(self, proof: ErasureProof) -> ErasureProof:
        return replace(proof, stores={**proof.stores, "file": await self._scrubbed()})

    async def _scrubbed(self) -> Erased:
        """A file that cannot be rewritten yet is reported, not raised."""
        try:
            return await self._file.maintain(_scrub)
        except StoreFull:
            if not await self._file.make_room():
                return _NOT_SCRUBBED
            with suppress(StoreError):
                return await self._file.maintain(_scrub)
        except StoreError:
            pass
        finally:
            with suppress(StoreError):  # or the log keeps the room that a failed rewrite took
                await self._file.fold_log()
            self._file.keep_reserve()
        return _NOT_SCRUBBED

    @property
    def is_ready(self) -> bool:
        return True

    @property
    def address(self) -> str:
        path = self._file.path
        return path if path == ":memory:" else str(Path(path).resolve())

    async def stats(self, scope: Scope | None) -> Stats:
        found = await super().stats(scope)
        return found if scope is not None else replace(found, bytes_on_disk=self._bytes_on_disk())

    async def write_obstacle(self) -> HealthFinding | None:
        if not self._file.may_write():
            fix = "give the process write access to the file and its folder"
            return HealthFinding("read_only", "the archive's file can only be read", fix)
        if not self._file.has_room():
            return HealthFinding("full", "no space is left on the archive's disk", "free some, or enlarge the disk")
        return None

    def _bytes_on_disk(self) -> int:
        paths = (Path(self._file.path + suffix) for suffix in ("", "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())


def _scrub(connection: sqlite3.Connection) -> Erased:
    """Merge the index, rewrite the file from its live rows and empty the log.

    Deleted words linger in older segments of the index until these are merged. That takes room for the whole index, so
    it is no part of the erasing transaction, which has to pass on a disk that is all but full.

    `secure_delete` overwrites what is deleted, but not the copies that SQLite left in the slack of other pages when it
    once moved rows between them. Only a rewrite is rid of those. Other processes that are reading may hold the log for
    a moment; past our patience that is a failure to report.
    """
    connection.execute("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
    connection.execute("VACUUM")
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_WAL_PATIENCE_MS}")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience}")
    return _NOT_SCRUBBED if busy else Erased(found=1, removed=1)
