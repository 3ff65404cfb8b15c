"""Checkpoints on a server database. On PostgreSQL a put is one statement."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from threadkeep.checkpoints.parts import joined, pages_of
from threadkeep.checkpoints.sql import statements
from threadkeep.checkpoints.sql.putting import Putting, ThreadGone, place_values, put, put_writes
from threadkeep.checkpoints.sql.search import conditions_of, exact
from threadkeep.checkpoints.sql.threads import (
    copy_thread,
    delete_thread,
    erase_threads,
    generation_of,
    thin_out,
    thread_ids,
)
from threadkeep.checkpoints.turn_keys import SqlTurnKeys
from threadkeep.checkpoints.usage import SqlUsage
from threadkeep.checkpoints.value_types import SqlValueTypes
from threadkeep.db.driver import DriverConnection
from threadkeep.db.messages import moment
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import ScopeErased
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import (
    NewCheckpoint,
    Page,
    ParentGone,
    Plan,
    Run,
    Search,
    StoredCheckpoint,
    Wanting,
    Write,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import Scope
from threadkeep.threads import Thread, escaped, ns_key

_DELETED = "this thread was deleted after the run began; nothing was stored"
_TOUCHED_AGAIN_AFTER = 60_000_000  # microseconds
_MOST_REMEMBERED = 10_000
_LONG_SECONDS = 600.0  # a user may have a great many threads
_RUNS_AT_ONCE = 50


@contextmanager
def _deleted_again() -> Generator[None]:
    try:
        yield
    except ThreadGone:
        raise ScopeErased(_DELETED) from None


class SqlCheckpoints:
    """Remembers which threads it has marked as active lately, to spare their rows an update with every checkpoint."""

    def __init__(self, database: ServerDatabase, clock: Clock = system_clock, *, owned: bool = False) -> None:
        self._database = database
        self._clock = clock
        self._owned = owned
        self._postgres = database.engine.dialect.name == "postgresql"
        self._touched: dict[bytes, int] = {}
        self.turn_keys, self.usage = SqlTurnKeys(database, clock), SqlUsage(database)
        self.value_types = SqlValueTypes(database)

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        await self._refuse_erased(thread, checkpoint)
        now = moment(self._clock())
        place = now - self._touched.get(thread.key, 0) > _TOUCHED_AGAIN_AFTER
        putting = Putting(thread, checkpoint, now, place, checkpoint.parent is not None)
        try:
            await self._put(putting)
        except ThreadGone:  # deleted since we touched it: what has no parent begins it anew
            self._touched.pop(thread.key, None)
            with _deleted_again():
                await self._put(replace(putting, place=True))
        if place:
            self._remember(thread, now)
        if checkpoint.parent is None:  # who erases at the same moment did not see it; who does from now on finds it
            try:
                await self._refuse_erased(thread, checkpoint)
            except ScopeErased:
                await self.delete(thread)
                raise

    async def _refuse_erased(self, thread: Thread, new: NewCheckpoint) -> None:
        if new.generation is not None and await self.generation(thread) > new.generation:
            raise ScopeErased(_DELETED)

    async def _put(self, putting: Putting) -> None:
        if await self._stored(putting):
            return
        if await self.generation(putting.thread):
            raise ScopeErased(_DELETED)
        if putting.new.builds_on_parent:
            raise ParentGone
        await self._stored(replace(putting, place=True, needs_parent=False))

    async def _stored(self, putting: Putting) -> bool:
        mariadb: bool = getattr(self._database.engine.dialect, "is_mariadb", False)  # known once it is connected
        return await self._database.direct(partial(put, putting=putting, postgres=self._postgres, mariadb=mariadb))

    def _remember(self, thread: Thread, now: int) -> None:
        if len(self._touched) >= _MOST_REMEMBERED:
            self._touched.clear()
        self._touched[thread.key] = now

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        place = {"key": thread.key, "ns": ns_key(ns), "id": exact(escaped(checkpoint), postgres=self._postgres)}
        held = None if turn is None else {"key": thread.key, "turn": turn, "now": moment(self._clock())}
        work = partial(put_writes, place=place, writes=writes, postgres=self._postgres, held=held)
        try:
            await self._database.direct(work)
        except ThreadGone:
            await self._begin(thread)
            with _deleted_again():
                await self._database.direct(work)

    async def _begin(self, thread: Thread) -> None:
        """Writes may come before the first checkpoint of a thread; after its end they are refused."""
        if await self.generation(thread):
            raise ScopeErased(_DELETED)
        values = place_values(thread, moment(self._clock()), postgres=self._postgres)
        await self._database.direct(lambda line: line.count(statements.touch(postgres=self._postgres), values))

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        values: dict[str, Any] = {"key": thread.key, "ns": ns_key(ns)}
        if checkpoint is not None:
            values["id"] = exact(escaped(checkpoint), postgres=self._postgres)
        query = statements.LATEST if checkpoint is None else statements.named(postgres=self._postgres)

        async def work(line: DriverConnection) -> StoredCheckpoint | None:
            found = joined(await line.rows(query, values))
            if not found or wanting is None:
                return found[0] if found else None
            return replace(found[0], pages=tuple(await read_pages(line, thread, wanting(found[0]))))

        return await self._database.direct(work)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        conditions, values = conditions_of(wanted, postgres=self._postgres)
        return joined(await self._rows(statements.find(conditions), values | {"most": limit}))

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        id_ = exact(escaped(checkpoint), postgres=self._postgres)
        values = {"key": thread.key, "ns": ns_key(ns), "id": id_, "most": limit}
        return joined(await self._rows(statements.lineage(postgres=self._postgres), values))

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        return await self._database.direct(lambda line: read_pages(line, thread, runs))

    async def _rows(self, query: str, values: dict[str, Any]) -> Sequence[Any]:
        return await self._database.direct(lambda line: line.rows(query, values))

    async def delete(self, thread: Thread) -> None:
        await self._database.transact(partial(delete_thread, thread=thread), seconds=_LONG_SECONDS)

    async def copy(self, source: Thread, target: Thread) -> None:
        work = partial(copy_thread, source=source, target=target, now=moment(self._clock()))
        await self._database.transact(work, seconds=_LONG_SECONDS)

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._database.transact(partial(thin_out, thread=thread, plan=plan), seconds=_LONG_SECONDS)

    async def generation(self, thread: Thread) -> int:
        return await self._database.direct(partial(generation_of, thread=thread))

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        return await self._database.snapshot(partial(thread_ids, owner=owner, facts=facts))

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        return await self._database.transact(partial(erase_threads, scope=scope, fact=fact), seconds=_LONG_SECONDS)

    async def close(self) -> None:
        if self._owned:
            await self._database.close()


async def read_pages(line: DriverConnection, thread: Thread, runs: Sequence[Run]) -> list[Page]:
    found: list[Page] = []
    for start in range(0, len(runs), _RUNS_AT_ONCE):
        some = runs[start : start + _RUNS_AT_ONCE]
        values: dict[str, Any] = {"key": thread.key}
        for number, run in enumerate(some):
            values |= {f"strand{number}": run.strand, f"start{number}": run.start, f"stop{number}": run.stop}
        found += pages_of(await line.rows(statements.pages(len(some)), values))
    return found
