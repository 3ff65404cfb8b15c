"""Reading verbs: one checkpoint, many, and the history of delta channels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory, PendingWrite

from threadkeep.adapters.langgraph.cache import ItemsMissing
from threadkeep.adapters.langgraph.checkpoint_rows import (
    checked_filter,
    matches,
    metadata_of,
    pending_write,
    unpack_body,
    wanted_facts,
    where_is,
)
from threadkeep.adapters.langgraph.location import Location, configurable
from threadkeep.adapters.langgraph.session import Asking, Session
from threadkeep.errors import CheckpointCorrupt, InvalidInput
from threadkeep.ports.checkpoints import Search, StoredCheckpoint
from threadkeep.ports.threads import Thread, short_id, thread_of

T = TypeVar("T")
_PAGE = 50
_ANCESTORS_AT_ONCE = 100


class _Deleted(Exception):
    """A checkpoint was pruned or deleted, or went with its turn, after its row was read."""


class Reader:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, asking: Asking, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a turn again that ends while it is being read; and the latest checkpoint, if it was deleted."""
        location = asking.identity.locate(config)
        thread = location.thread
        while True:
            key = None if asking.turns is None else await asking.turns.key(thread)
            try:
                asked = await asking.reading(thread)
                return await self._session.knowing(partial(self._get, asked, location))
            except _Deleted:
                if location.checkpoint is not None:
                    return None
            except CheckpointCorrupt:
                if asking.turns is None or await asking.turns.key(thread) == key:
                    raise

    async def _get(self, asking: Asking, location: Location) -> CheckpointTuple | None:
        wanting = self._session.reading.wanting(location.thread)
        row = await self._session.router.use(
            lambda store: store.get(location.thread, location.ns, location.checkpoint, wanting)
        )
        if row is None:
            if location.checkpoint is None:
                self._session.forget(location.thread)  # perhaps it was deleted elsewhere
            return None
        return await self._tuple(asking, location.thread, row)

    async def _tuple(self, asking: Asking, thread: Thread, row: StoredCheckpoint) -> CheckpointTuple:
        with_items = self._session.reading.tuple_of(thread.owner, row, asking.codec, asking.identity)
        return await self._unless_deleted(thread, row, with_items)

    async def _unless_deleted(self, thread: Thread, row: StoredCheckpoint, with_items: Awaitable[T]) -> T:
        """Raises `_Deleted`."""
        try:
            return await with_items
        except ItemsMissing:
            if await self._session.router.use(lambda store: store.get(thread, row.ns, row.id)) is not None:
                raise
            raise _Deleted from None

    async def find(
        self,
        asking: Asking,
        config: RunnableConfig | None,
        given_filter: Any,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The database filters what it can; what only Python can compare (an encrypted value, None) is filtered here.

        Where the first one goes while it is read, the search begins anew: there may be others by now.
        """
        wanted = checked_filter(given_filter)
        search = beginning = self._search(asking, config, before, wanted)
        left = _checked_limit(limit)
        known: dict[bytes, Asking] = {}
        any_found = False
        while left is None or left > 0:
            size = _PAGE if left is None or wanted else min(_PAGE, left)
            rows = await self._session.router.use(lambda store, asked=search, size=size: store.find(asked, size))
            for row in rows:
                if left == 0:
                    break
                thread = Thread(search.owner, row.thread)
                try:
                    reading = await self._reading(asking, row, thread, known)
                    found = await self._session.knowing(partial(self._matching, reading, thread, row, wanted))
                    if found is None:
                        continue
                except _Deleted:
                    if any_found:
                        continue
                    search = beginning
                    break
                any_found = True
                left = None if left is None else left - 1
                yield found
            else:
                if len(rows) < size:
                    return
                search = replace(search, after=rows[-1])

    async def _matching(
        self, reading: Asking, thread: Thread, row: StoredCheckpoint, wanted: Mapping[str, Any]
    ) -> CheckpointTuple | None:
        if wanted and not matches(metadata_of(row, reading.codec), wanted.items()):
            return None
        return await self._tuple(reading, thread, row)

    async def _reading(
        self, asking: Asking, row: StoredCheckpoint, thread: Thread, known: dict[bytes, Asking]
    ) -> Asking:
        """Raises `_Deleted`."""
        if asking.turns is None:
            return asking
        if thread.key not in known:
            known[thread.key] = await asking.reading(thread)
        try:
            unpack_body(row.body, known[thread.key].codec, where_is(row))
        except CheckpointCorrupt:
            known[thread.key] = await asking.reading(thread)
            here = await self._session.router.use(lambda store: store.get(thread, row.ns, row.id))
            if here is None:
                raise _Deleted from None
        return known[thread.key]

    def _search(
        self, asking: Asking, config: RunnableConfig | None, before: RunnableConfig | None, wanted: Mapping[str, Any]
    ) -> Search:
        given = configurable(config)
        owner = asking.identity.owner(config)
        thread, ns, id_ = given.get("thread_id"), given.get("checkpoint_ns"), given.get("checkpoint_id")
        until = configurable(before).get("checkpoint_id")
        return Search(
            owner,
            None if thread is None else thread_of(owner, thread).id,
            None if ns is None else str(ns),
            short_id("configurable.checkpoint_id", id_) if id_ else None,
            short_id("before.configurable.checkpoint_id", until) if until else None,
            wanted_facts(wanted),
        )

    async def history(
        self, asking: Asking, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        if not channels:
            return {}
        location = asking.identity.locate(config)
        while True:
            try:
                asked = await asking.reading(location.thread)
                return await self._session.knowing(partial(self._history, asked, location, channels))
            except _Deleted:
                continue  # the ancestors are others by now

    async def _history(
        self, asking: Asking, location: Location, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        walk = _Walk(channels)
        async for row in self._ancestors(location):
            body = unpack_body(row.body, asking.codec, where_is(row))
            for write in reversed(row.writes):
                if write.channel in walk.remaining:
                    walk.writes[write.channel].append(pending_write(write, asking.codec, where_is(row)))
            seeds = {channel: ref for channel, ref in body.refs.items() if channel in walk.remaining}
            values = self._session.reading.values(location.thread, seeds, asking.codec, where_is(row))
            walk.seeds |= await self._unless_deleted(location.thread, row, values)
            walk.remaining -= {*seeds}
            if not walk.remaining:
                break
        return walk.result()

    async def _ancestors(self, location: Location) -> AsyncIterator[StoredCheckpoint]:
        """Nearest first, without the checkpoint itself; each once, should the chain ever run in a circle."""
        cursor = location.checkpoint
        if cursor is None:
            latest = await self._session.router.use(lambda store: store.get(location.thread, location.ns, None))
            cursor = None if latest is None else latest.id
        seen = {cursor}
        while cursor is not None:
            rows = await self._session.router.use(
                lambda store, at=cursor: store.lineage(location.thread, location.ns, at, _ANCESTORS_AT_ONCE)
            )
            for row in rows[1:]:
                if row.id in seen:
                    return
                seen.add(row.id)
                yield row
            cursor = rows[-1].id if len(rows) == _ANCESTORS_AT_ONCE else None


class _Walk:
    def __init__(self, channels: Sequence[str]) -> None:
        self.remaining = {*channels}
        self.writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}  # newest first
        self.seeds: dict[str, Any] = {}

    def result(self) -> dict[str, DeltaChannelHistory]:
        found: dict[str, DeltaChannelHistory] = {}
        for channel, writes in self.writes.items():
            found[channel] = {"writes": writes[::-1]}
            if channel in self.seeds:
                found[channel]["seed"] = self.seeds[channel]
        return found


def _checked_limit(limit: Any) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise InvalidInput("limit", f"is a {type(limit).__name__}", "give a whole number")
    return limit
