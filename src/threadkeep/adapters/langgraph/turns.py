"""`tool_traffic="turn"`: while a turn is in flight all that it stores is encrypted under a key of its own.

The first put begins the turn, or continues one that waits. The store accepts what was encrypted only while the key
stands, in one transaction; where another process has ended the turn, the same is written under a new key.
"""

from __future__ import annotations

import threading
from typing import Any

from cachetools import LRUCache

from threadkeep.adapters.langgraph.codec import IN_FLIGHT, Codec, Encoded, is_in_flight
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.errors import CheckpointCorrupt, MissingExtra
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.threads import Thread
from threadkeep.ports.turn_keys import TurnKey
from threadkeep.sealing import KEY_BYTES, Sealer, key_from, new_key

_BARE, _SEALED = b"\x00", b"\x01"


class TurnCodec(Codec):
    """Reads what was stored either way; writes under the key. Without one nothing is in flight."""

    def __init__(self, inner: Codec, key: bytes | None) -> None:
        super().__init__(inner.serde, inner.types)
        self.plain = False
        self._sealer = None if key is None else _sealer(key)

    def encode(self, value: Any, where: str) -> Encoded:
        kind, data, same = super().encode(value, where)
        assert self._sealer is not None
        return Encoded(kind + IN_FLIGHT, self._sealer.seal(data, kind.encode()), same)

    def decode(self, kind: str, data: bytes, where: str) -> Any:
        if not is_in_flight(kind):
            return super().decode(kind, data, where)
        plain_kind = kind.removesuffix(IN_FLIGHT)
        try:
            return super().decode(plain_kind, self._opened(plain_kind, data), where)
        except ValueError:
            raise CheckpointCorrupt(f"{where} belongs to a turn that has ended, or to another key") from None

    def same(self, kind: str, data: bytes) -> int | None:
        if not is_in_flight(kind):
            return super().same(kind, data)
        plain_kind = kind.removesuffix(IN_FLIGHT)
        try:
            return super().same(plain_kind, self._opened(plain_kind, data))
        except ValueError:
            return None

    def _opened(self, kind: str, data: bytes) -> bytes:
        """Raises `ValueError`."""
        plain = None if self._sealer is None else self._sealer.open(data, kind.encode())
        if plain is None:
            raise ValueError("not under this key")
        return plain


class TurnSeal:
    """A turn's key as it rests in the database: sealed with `THREADKEEP_SLOT_KEY`, where there is one."""

    def __init__(self, setting: str | None) -> None:
        self._master = None if setting is None else _sealer(key_from(setting))

    def new(self, thread_key: bytes) -> bytes:
        key = new_key()
        return _BARE + key if self._master is None else _SEALED + self._master.seal(key, thread_key)

    def opened(self, sealed: bytes, thread_key: bytes) -> bytes:
        """Raises `CheckpointCorrupt` for one that another setting has sealed."""
        how, rest = sealed[:1], sealed[1:]
        if how == _BARE and len(rest) == KEY_BYTES:
            return rest
        key = None if self._master is None or how != _SEALED else self._master.open(rest, thread_key)
        if key is None:
            raise CheckpointCorrupt(
                "a turn in flight was sealed with another THREADKEEP_SLOT_KEY, or its key is damaged; restore it, or"
                " abandon the turn"
            )
        return key


def _sealer(key: bytes) -> Sealer:
    try:
        return Sealer(key)
    except ModuleNotFoundError:
        raise MissingExtra("langgraph", 'tool_traffic="turn"') from None


_MOST_REMEMBERED = 10_000


class Turns:
    def __init__(self, router: StoreRouter[CheckpointStore], seal: TurnSeal) -> None:
        self._router = router
        self._seal = seal
        # sealed keys written under here
        self._begun: LRUCache[bytes, tuple[Thread, bytes]] = LRUCache(_MOST_REMEMBERED)
        self._changing = threading.Lock()

    async def key(self, thread: Thread) -> TurnKey | None:
        return await self._router.use(lambda store: store.turn_keys.get(thread))

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
        with self._changing:
            _, sealed = self._begun.get(thread.key, (thread, None))
        if sealed is not None:
            return TurnCodec(codec, self._seal.opened(sealed, thread.key)), sealed
        new = self._seal.new(thread.key)
        key = await self._router.use(lambda store: store.turn_keys.begin(thread, new))
        opened = self.opened(thread, key)  # or it is not ours, and not remembered: others may end that turn
        with self._changing:
            self._begun[thread.key] = (thread, key.sealed)
        return TurnCodec(codec, opened), key.sealed

    def begun_as(self, thread_id: str) -> list[Thread]:
        """Threads of this name, of whomever, that are in flight in this process."""
        with self._changing:
            return [thread for thread, _ in self._begun.values() if thread.id == thread_id]

    def forget(self, thread: Thread) -> None:
        with self._changing:
            self._begun.pop(thread.key, None)
