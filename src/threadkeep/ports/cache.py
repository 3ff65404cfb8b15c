"""Cached answers, wherever they are kept: in this process, or in a store that several share."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from threadkeep.ports.knowledge import Access
from threadkeep.ports.models import EmbeddingModel
from threadkeep.scope import Scope, length_prefixed

SIMILAR = 0.95
SAME = 0.9999  # the same words
TTL_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """`answer` is what JSON can carry. It names what was found and holds no text, of a document or of a question."""

    vector: tuple[float, ...]
    answer: Any
    until: datetime


@dataclass(frozen=True, slots=True)
class CachePlace:
    """Where answers of one access lie, for one embedder, one set of datasources, and one set of figures.

    `figures` are the numbers in a question: "part 7" and "part 8" are alike to an embedder, and two questions. `lent`
    is a digest of all that a follow-up is searched by, its conversation's share included; empty for any other question.
    """

    access: Access
    model: EmbeddingModel
    datasources: tuple[str, ...] | None = None
    figures: tuple[str, ...] = ()
    lent: str = ""

    @property
    def key(self) -> bytes:
        sources = ("*",) if self.datasources is None else ("=", *sorted(set(self.datasources)))
        within = (self.model.name, str(self.model.dimensions), str(len(sources)), *sources, *self.figures, self.lent)
        return self.access.key + length_prefixed(within)


class Entries(Protocol):
    """Where entries are kept: in this process, or in a store that several share."""

    async def read(self, place: CachePlace) -> Sequence[Entry]: ...

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        """These and no others, until the last of them has had its time."""
        ...

    async def erase(self, scope: Scope) -> int:
        """Delete all entries of the user; return how many keys they had."""
        ...


def encoded(entries: Collection[Entry]) -> bytes:
    """For a store that keeps bytes. Never a pickle."""
    told = [
        [struct.pack(f"<{len(one.vector)}f", *one.vector).hex(), one.answer, one.until.isoformat()] for one in entries
    ]
    return json.dumps(told, ensure_ascii=True).encode()


def decoded(data: bytes) -> tuple[Entry, ...]:
    """Nothing for bytes that are not ours: a cache may always be empty."""
    try:
        return tuple(
            Entry(
                struct.unpack(f"<{len(vector) // 8}f", bytes.fromhex(vector)),
                answer,
                datetime.fromisoformat(until),
            )
            for vector, answer, until in json.loads(data)
        )
    except (ValueError, TypeError, KeyError, AttributeError, struct.error):
        return ()
