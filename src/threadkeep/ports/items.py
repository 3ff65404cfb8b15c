"""Items of a LangGraph store: values under a namespace and a name, which may expire and may have vectors."""

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
