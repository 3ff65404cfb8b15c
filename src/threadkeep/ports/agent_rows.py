"""What agent frameworks store besides messages: items of LangGraph stores, and rows of their sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from threadkeep.model import Erased
from threadkeep.scope import Scope, length_prefixed

_LABEL_END = b"\x00"


@dataclass(frozen=True, slots=True)
class NewItem:
    """`user` is who can have it erased; empty where a tenant's users share it."""

    key: bytes
    space: bytes
    namespace: bytes
    name: bytes
    tenant: str
    user: str
    value: bytes
    facts: bytes
    ttl_minutes: float | None = None
    model: bytes = b""  # of the vectors
    vectors: Sequence[bytes] = field(default_factory=tuple[bytes, ...])


@dataclass(frozen=True, slots=True)
class StoredItem:
    key: bytes
    namespace: bytes
    name: bytes
    value: bytes
    created_at: int  # microseconds since 1970
    updated_at: int


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """Items below a namespace, latest change first."""

    space: bytes
    prefix: bytes
    facts: tuple[bytes, ...] = ()  # each must be among the item's
    after: StoredItem | None = None  # the last one of the page before


class ItemStore(Protocol):
    """Items of a LangGraph store: values under a namespace and a name, which may expire and may have vectors."""

    async def get(self, keys: Sequence[bytes], refreshed: Sequence[bytes] = ()) -> Sequence[StoredItem]:
        """Those that are there and have not expired; of the `refreshed` ones the TTL begins anew."""
        ...

    async def change(self, put: Sequence[NewItem], deleted: Sequence[bytes]) -> None:
        """All or nothing. What is put again keeps its time of creation."""
        ...

    async def find(self, wanted: ItemSearch, limit: int, offset: int = 0) -> Sequence[StoredItem]:
        """A page of at most `limit`."""
        ...

    async def vectors(self, wanted: ItemSearch, model: bytes) -> Sequence[tuple[bytes, bytes]]:
        """Key and vector, of every item below the namespace that has some of this model."""
        ...

    async def namespaces(self, space: bytes, prefix: bytes) -> Sequence[bytes]:
        """Of items that have not expired."""
        ...

    async def sweep(self) -> int:
        """Delete what has expired; how many items."""
        ...

    async def holds(self, user: Scope) -> bool:
        """Whether anything is kept of the user here: items, or rows of agents' sessions."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """Every item that is the user's. Items belong to no conversation: of one, only its agent's rows are erased."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...


def encoded_namespace(labels: Sequence[str]) -> bytes:
    """One for one, and so that a namespace begins with the bytes of those above it, and with no others."""
    return b"".join(_escaped(label.encode("utf-8", "surrogatepass")) + _LABEL_END for label in labels)


def decoded_namespace(stored: bytes) -> tuple[str, ...]:
    labels = stored.split(_LABEL_END)[:-1]
    return tuple(_unescaped(label).decode("utf-8", "surrogatepass") for label in labels)


def space_of(tenant: str, user: str | None) -> bytes:
    """Sixteen bytes for a user's items, or for those that a tenant shares."""
    return Scope(tenant, user or "-").digest("items", "of a user" if user else "shared")


def item_key(space: bytes, namespace: bytes, name: bytes) -> bytes:
    parts = (space.hex(), namespace.hex(), name.hex())
    return hashlib.blake2b(length_prefixed(parts), digest_size=16).digest()


def _escaped(label: bytes) -> bytes:
    return label.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")


def _unescaped(label: bytes) -> bytes:
    return label.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")


_VERSION_BYTES = 8
WITH_TURNS = float("inf")  # a row's `ttl_seconds`: as long after it was last written as turns are kept, by the reader


@dataclass(frozen=True, slots=True)
class Row:
    """`space` is what rows are read together by; `place` is its owner's key: erasing the owner removes the row."""

    key: bytes
    space: bytes
    name: bytes
    tenant: str
    user: str  # empty where a tenant's users share it
    place: bytes
    value: bytes
    namespace: bytes = b""
    version: int = 0
    ttl_seconds: float | None = None

    @property
    def facts(self) -> bytes:
        return self.place + self.version.to_bytes(_VERSION_BYTES, "big")


@dataclass(frozen=True, slots=True)
class StoredRow:
    key: bytes
    namespace: bytes
    name: bytes
    value: bytes
    facts: bytes

    @property
    def version(self) -> int:
        return int.from_bytes(self.facts[-_VERSION_BYTES:], "big")


class AgentRows(Protocol):
    """Rows that an agent framework's sessions need besides the messages: heads, frames, work in flight, state.

    No row holds messages, but for items that an application encrypted itself: the rest stands in the archive
    alone. A head is changed only by a writer that has read its latest
    version, together with the rows that go with it, in one step.
    """

    async def get(self, keys: Sequence[bytes]) -> Sequence[StoredRow]:
        """Those that are there and have not expired, in no order."""
        ...

    async def all_of(self, spaces: Sequence[bytes], namespace: bytes | None = None) -> Sequence[StoredRow]:
        """Every row of these spaces that has not expired, in no order."""
        ...

    async def create(self, head: Row, put: Sequence[Row] = ()) -> bool:
        """False, and nothing is stored, when there is such a row already."""
        ...

    async def swap(self, old: StoredRow, head: Row, put: Sequence[Row] = (), deleted: Sequence[bytes] = ()) -> bool:
        """False, and nothing is changed, when the head is no longer the one that was read."""
        ...

    async def put(self, rows: Sequence[Row]) -> None:
        """Whatever stands there; all or nothing."""
        ...

    async def remove(self, keys: Sequence[bytes], spaces: Sequence[bytes] = ()) -> int:
        """How many there were."""
        ...

    async def sweep(self) -> int:
        """Delete what has expired; how many rows."""
        ...

    async def close(self) -> None: ...


def place_of(scope: Scope) -> bytes:
    """Sixteen bytes for a conversation, or for what a user has outside of any."""
    return scope.digest("agent rows")
