"""`tool_traffic="turn"`: while a turn is in flight all that it stores is encrypted under a key of its own.

The first put of a run begins the turn, or goes on with one that waits. LangGraph reads a thread before it writes to it:
so every reading looks for the key anew, and a key that another process has ended is never written under.
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
        self._begun: OrderedDict[bytes, bytes] = OrderedDict()  # since the thread was last read here

    async def key(self, thread: Thread) -> TurnKey | None:
        self._begun.pop(thread.key, None)
        return await self._door.use(lambda store: store.turn_keys.get(thread))

    def opened(self, thread: Thread, key: TurnKey) -> bytes:
        """Raises `CheckpointCorrupt` where it was sealed with another setting."""
        return self._seal.opened(key.sealed, thread.key)

    async def reading(self, thread: Thread, codec: Codec) -> TurnCodec:
        key = await self.key(thread)
        return TurnCodec(codec, None if key is None else self.opened(thread, key))

    async def writing(self, thread: Thread, codec: Codec) -> TurnCodec:
        opened = self._begun.get(thread.key)
        if opened is None:
            sealed = self._seal.new(thread.key)
            opened = self.opened(thread, await self._door.use(lambda store: store.turn_keys.begin(thread, sealed)))
            self._begun[thread.key] = opened
            if len(self._begun) > _MOST_REMEMBERED:
                self._begun.popitem(last=False)
        return TurnCodec(codec, opened)
