"""`tool_traffic="turn"`: while a turn is in flight all that it stores is encrypted under a key of its own.

The first put begins the turn, or goes on with one that waits. The store takes what was encrypted only while the key
stands, in one transaction; where another process has ended the turn meanwhile, the same is written under a new key.
"""

from __future__ import annotations

from collections import OrderedDict

from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.door import Door
from threadkeep.adapters.langgraph.turn_codec import TurnCodec, TurnSeal
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.turn_keys import TurnKey
from threadkeep.threads import Thread

_MOST_REMEMBERED = 10_000


class Turns:
    def __init__(self, door: Door[CheckpointStore], seal: TurnSeal) -> None:
        self._door = door
        self._seal = seal
        self._begun: OrderedDict[bytes, tuple[Thread, bytes]] = OrderedDict()  # sealed keys written under here

    async def key(self, thread: Thread) -> TurnKey | None:
        return await self._door.use(lambda store: store.turn_keys.get(thread))

    async def stands(self, thread: Thread, sealed: bytes | None) -> bool:
        """Whether that is still the key of the thread's turn."""
        key = await self.key(thread)
        return key is not None and key.sealed == sealed

    def opened(self, thread: Thread, key: TurnKey) -> bytes:
        """Raises `CheckpointCorrupt` where it was sealed with another setting."""
        return self._seal.opened(key.sealed, thread.key)

    async def reading(self, thread: Thread, codec: Codec) -> TurnCodec:
        key = await self.key(thread)
        return TurnCodec(codec, None if key is None else self.opened(thread, key))

    async def writing(self, thread: Thread, codec: Codec) -> tuple[TurnCodec, bytes]:
        """And the sealed key, for the store to see that it still stands."""
        _, sealed = self._begun.get(thread.key, (thread, None))
        if sealed is not None:
            return TurnCodec(codec, self._seal.opened(sealed, thread.key)), sealed
        new = self._seal.new(thread.key)
        key = await self._door.use(lambda store: store.turn_keys.begin(thread, new))
        opened = self.opened(thread, key)  # or it is not ours, and not remembered: others may end that turn
        self._begun[thread.key] = (thread, key.sealed)
        if len(self._begun) > _MOST_REMEMBERED:
            self._begun.popitem(last=False)
        return TurnCodec(codec, opened), key.sealed

    def begun_as(self, thread_id: str) -> list[Thread]:
        """Threads of this name, of whomever, that are in flight in this process."""
        return [thread for thread, _ in [*self._begun.values()] if thread.id == thread_id]

    def forget(self, thread: Thread) -> None:
        self._begun.pop(thread.key, None)
