"""The hot store in front of an archive: which one it is, in which mode, and whether a process may write beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.errors import HotStoreMismatch

Durability = Literal["fast", "durable"]


@dataclass(frozen=True, slots=True)
class Front:
    """What the archive records of its hot store. `address` is where it was when it was attached.

    `missed` counts what was stored while the hot store was unavailable: it trusts nothing from before the last one.
    """

    id: str
    durability: Durability
    address: str
    missed: int = 0


@dataclass(slots=True)
class Claim:
    """What one process brings along. An archive compares it with its `Front` inside every transaction that writes.

    `durability` is None in a process without a hot store; `id` is None until its hot store has answered.
    """

    durability: Durability | None = None
    id: str | None = None

    def check_writer(self, front: Front | None) -> None:
        """Raise `HotStoreMismatch` unless this process may append or erase."""
        self.check_hot_store(front)
        if front is not None and front.durability != self.durability:
            raise HotStoreMismatch(
                "THREADKEEP_DURABILITY",
                f"is {self.durability} here and {front.durability} in the other processes on this archive",
                f"set it to {front.durability}; to change it for all, stop them and run `threadkeep detach`",
            )

    def check_hot_store(self, front: Front | None) -> None:
        """The same for a worker, which brings what others appended: its mode does not matter."""
        if front is None:
            if self.id is not None:
                raise HotStoreMismatch("REDIS_URL", "this Redis was detached from the archive", "repeat the call")
        elif self.durability is None:
            raise HotStoreMismatch(
                "REDIS_URL",
                "this process has no Redis, and the archive has one in front of it",
                f"set it (or --redis) to the Redis at {front.address}, or run `threadkeep detach`",
            )
        elif self.id not in (None, front.id):
            raise another_hot_store(front)


def another_hot_store(front: Front) -> HotStoreMismatch:
    return HotStoreMismatch(
        "REDIS_URL",
        "names another Redis than the one in front of this archive",
        f"set it to the Redis at {front.address}; to move to another, run `threadkeep detach` first",
    )


class Fronted(Protocol):
    """An archive that knows its hot store."""

    @property
    def claim(self) -> Claim:
        """Of the process that opened it; changed in place."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it has answered since it was opened."""
        ...

    @property
    def address(self) -> str:
        """Host, port and name of the database, or the path of its file; no credentials."""
        ...

    async def front(self) -> Front | None:
        """The hot store that is attached, None where there is none."""
        ...

    async def attach(self, front: Front) -> Front:
        """Record `front` unless one is recorded, and return what is."""
        ...

    async def note_missed(self) -> None:
        """Count that something is stored or erased of which the hot store does not hear."""
        ...

    async def detach(self, id: str | None = None) -> bool:
        """Remove the record: of this hot store, or of any. False where there was none."""
        ...


@dataclass(frozen=True, slots=True)
class Fronting:
    """What a hot store records of the archive behind it. `archive` is a digest of the archive's address.

    `missed` is for `put`: the archive's count. What is read says nothing of it.
    """

    id: str
    durability: Durability
    archive: str
    missed: int = 0


class HotFront(Protocol):
    """A hot store that knows which archive it stands in front of."""

    @property
    def address(self) -> str: ...

    async def read(self) -> Fronting | None:
        """Raise `HotStoreMismatch` where a detach was begun and not ended."""
        ...

    async def put(self, fronting: Fronting) -> None:
        """Record it wherever nothing is recorded, and `missed` wherever less is known."""
        ...

    async def use(self, id: str) -> None:
        """From now on an append of this process is refused by a store that records another id."""
        ...
