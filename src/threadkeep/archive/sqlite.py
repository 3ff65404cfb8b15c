"""The archive on one SQLite file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from threadkeep.archive.database import DatabaseArchive, TermsOf
from threadkeep.archive.erase import erase_piece, with_pieces
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.statements import Verb
from threadkeep.db.terms import BATCH, COUNT_WAITING, index_waiting
from threadkeep.errors import StoreError, StoreFull
from threadkeep.model import Admission, Erased, ErasureProof, Receipt, Stats
from threadkeep.ports.archive import Entry, Placed
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

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
