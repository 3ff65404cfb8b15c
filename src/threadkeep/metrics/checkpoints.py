"""A store of checkpoints, measured: saving, loading, listing, and how much a checkpoint added."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.metrics.names import CHECKPOINT_BYTES, CHECKPOINT_LIST, CHECKPOINT_LOAD, CHECKPOINT_SAVE
from threadkeep.metrics.timing import timed
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import (
    CheckpointStore,
    NewCheckpoint,
    Page,
    Plan,
    Run,
    Search,
    StoredCheckpoint,
    ValueTypes,
    Wanting,
    Write,
)
from threadkeep.ports.meter import Meter
from threadkeep.ports.threads import Thread
from threadkeep.ports.turn_keys import TurnKeys
from threadkeep.ports.usage import ThreadUsage
from threadkeep.scope import Scope


class MeasuredCheckpoints:
    """The same store. A put that was refused is timed, and adds no bytes."""

    def __init__(self, store: CheckpointStore, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        with timed(self._meter, CHECKPOINT_SAVE, None):
            await self._store.put(thread, checkpoint)
        self._meter.observe(CHECKPOINT_BYTES, _size(checkpoint))

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        with timed(self._meter, CHECKPOINT_LOAD, None):
            return await self._store.get(thread, ns, checkpoint, wanting)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        with timed(self._meter, CHECKPOINT_LIST, None):
            return await self._store.find(wanted, limit)

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        await self._store.put_writes(thread, ns, checkpoint, writes, turn)

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        return await self._store.lineage(thread, ns, checkpoint, limit)

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        return await self._store.pages(thread, runs)

    async def delete(self, thread: Thread) -> None:
        await self._store.delete(thread)

    async def copy(self, source: Thread, target: Thread) -> None:
        await self._store.copy(source, target)

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._store.thin_out(thread, plan)

    async def generation(self, thread: Thread) -> int:
        return await self._store.generation(thread)

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        return await self._store.threads(owner, facts)

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        return await self._store.erase(scope, fact)

    async def close(self) -> None:
        await self._store.close()

    @property
    def turn_keys(self) -> TurnKeys:
        return self._store.turn_keys

    @property
    def usage(self) -> ThreadUsage:
        return self._store.usage

    @property
    def value_types(self) -> ValueTypes:
        return self._store.value_types


def _size(checkpoint: NewCheckpoint) -> int:
    return len(checkpoint.body) + len(checkpoint.metadata) + sum(len(page.data) for page in checkpoint.pages)
