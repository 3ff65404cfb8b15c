"""Checkpoints on one of the databases: SQLite, PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from threadkeep.checkpoints import reading, threads
from threadkeep.checkpoints.putting import (
    DELETED,
    Putting,
    SqlTurnKeys,
    ThreadMissing,
    put,
    put_writes,
    touch,
    values_of,
)
from threadkeep.checkpoints.reading import text_of
from threadkeep.checkpoints.threads import SqlUsage
from threadkeep.db.database import Database
from threadkeep.db.messages import moment
from threadkeep.db.statements import Change, Verb
from threadkeep.errors import ScopeErased
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import (
    NewCheckpoint,
    Page,
    Plan,
    Run,
    Search,
    StoredCheckpoint,
    TypeName,
    Wanting,
    Write,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.threads import Thread
from threadkeep.scope import Scope

_MOST_BYTES = 1_000  # of each, which is what a key may have on MariaDB; a longer one is not listed
_ADD = "INSERT INTO tk_checkpoint_types (module, name) VALUES (:module, :name)"


class SqlValueTypes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, names: Collection[TypeName]) -> None:
        dialect = self._database.dialect
        ignored = "ON DUPLICATE KEY UPDATE name = name" if dialect.is_mysql else "ON CONFLICT DO NOTHING"
        fit = [name for name in sorted(names) if all(_fits(part) for part in name)]
        bound = [{"module": dialect.id(module), "name": dialect.id(name)} for module, name in fit]
        await self._database.changed([Change(f"{_ADD} {ignored}", values) for values in bound])

    async def all(self) -> Collection[TypeName]:
        rows = await self._database.rows("SELECT module, name FROM tk_checkpoint_types", {})
        return [(text_of(module), text_of(name)) for module, name in rows]


def _fits(part: str) -> bool:
    return len(part.encode(errors="replace")) <= _MOST_BYTES and part.isprintable()


T = TypeVar("T")
_TOUCHED_AGAIN_AFTER = 60_000_000  # microseconds
_MOST_REMEMBERED = 10_000
_LONG_SECONDS = 600.0  # a user may have a great many threads


class DatabaseCheckpoints:
    """Remembers which threads it has marked as active lately, to spare their rows an update with every checkpoint."""

    def __init__(self, database: Database, clock: Clock = system_clock, *, owned: bool = False) -> None:
        self._database = database
        self._clock = clock
        self._owned = owned
        self._touched: dict[bytes, int] = {}
        self.turn_keys, self.usage = SqlTurnKeys(database, clock), SqlUsage(database)
        self.value_types = SqlValueTypes(database)

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        on_server = not self._database.dialect.is_sqlite
        if on_server:  # SQLite looks in the transaction
            await self._refuse_erased(thread, checkpoint)
        now = moment(self._clock())
        touches = now - self._touched.get(thread.key, 0) > _TOUCHED_AGAIN_AFTER
        # SQLite has no foreign key that would report a missing row of the thread.
        anew = checkpoint.parent is None and not on_server
        putting = Putting(thread, checkpoint, now, touches or anew, checkpoint.parent is not None)
        try:
            await self._put(putting)
        except ThreadMissing:  # deleted since we touched it: what has no parent begins it anew
            self._touched.pop(thread.key, None)
            try:
                await self._put(replace(putting, touches=True))
            except ThreadMissing:
                raise ScopeErased(DELETED) from None
        if touches:
            self._remember(thread, now)
        # Who erases at the same moment did not see a new thread; who does from now on finds it.
        if checkpoint.parent is None and on_server:
            try:
                await self._refuse_erased(thread, checkpoint)
            except ScopeErased:
                await self.delete(thread)
                raise

    async def _refuse_erased(self, thread: Thread, new: NewCheckpoint) -> None:
        if new.generation is not None and await self.generation(thread) > new.generation:
            raise ScopeErased(DELETED)

    async def _put(self, putting: Putting) -> None:
        # The dialect is read by the verb: a server that was down is known to be MariaDB only then.
        await self._database.write(lambda: put(putting, self._database.dialect), size=putting.new.size, repeatable=True)

    def _remember(self, thread: Thread, now: int) -> None:
        if len(self._touched) >= _MOST_REMEMBERED:
            self._touched.clear()
        self._touched[thread.key] = now

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        now, size = moment(self._clock()), sum(len(write.data) for write in writes)
        verb = partial(put_writes, thread, ns, checkpoint, writes, turn, now, self._database.dialect)
        try:
            await self._database.write(verb, size=size, repeatable=True)
        except ThreadMissing:
            await self._begin(thread, now)
            try:
                await self._database.write(verb, size=size, repeatable=True)
            except ThreadMissing:
                raise ScopeErased(DELETED) from None

    async def _begin(self, thread: Thread, now: int) -> None:
        """Writes may come before the first checkpoint of a thread; after its end they are refused."""
        if await self.generation(thread):
            raise ScopeErased(DELETED)
        dialect = self._database.dialect
        await self._database.changed([Change(touch(dialect), values_of(thread, now, dialect))])

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        return await self._read(reading.get, thread, ns, checkpoint, wanting)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        return await self._read(reading.find, wanted, limit)

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        return await self._read(reading.lineage, thread, ns, checkpoint, limit)

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        return await self._read(reading.pages, thread, runs)

    async def delete(self, thread: Thread) -> None:
        await self._change(threads.delete, thread)

    async def copy(self, source: Thread, target: Thread) -> None:
        await self._change(threads.copy, source, target, moment(self._clock()))

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._change(threads.thin_out, thread, plan)

    async def generation(self, thread: Thread) -> int:
        return await self._database.read(partial(threads.generation_of, thread))

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        return await self._read(threads.thread_ids, owner, facts)

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        return await self._change(threads.erase, scope, fact)

    async def close(self) -> None:
        if self._owned:
            await self._database.close()

    async def _read(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.read(partial(verb, *given, self._database.dialect))

    async def _change(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.write(partial(verb, *given, self._database.dialect), seconds=_LONG_SECONDS)
