"""Rows that an agent framework's sessions need besides the messages: heads, frames, work in flight, state.

No row holds messages, but for items that an application encrypted itself: the rest stands in the archive
alone. A head is changed only by a writer that has read its latest
version, together with the rows that go with it, in one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.scope import Scope

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
