"""Cached answers, wherever they are kept: in this process, or in a store that several share."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope, length_prefixed

TTL_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """`answer` is what JSON can carry; `documents` are the versions it was made from, by document id."""

    vector: tuple[float, ...]
    answer: Any
    documents: Mapping[str, int]
    until: datetime


@dataclass(frozen=True, slots=True)
class CachePlace:
    """Where answers of one access lie, for one embedder and one set of datasources."""

    access: Access
    model: EmbeddingModel
    datasources: tuple[str, ...] | None = None

    @property
    def key(self) -> bytes:
        sources = ("*",) if self.datasources is None else ("=", *sorted(set(self.datasources)))
        return self.access.key + length_prefixed((self.model.name, str(self.model.dimensions), *sources))


class Entries(Protocol):
    """Where entries are kept: in this process, or in a store that several share."""

    async def read(self, place: CachePlace) -> Sequence[Entry]: ...

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        """These and no others, for an hour at most."""
        ...

    async def erase(self, scope: Scope) -> int:
        """Of every place of the user."""
        ...


def encoded(entries: Collection[Entry]) -> bytes:
    """For a store that keeps bytes. Never a pickle."""
    told = [
        [struct.pack(f"<{len(one.vector)}f", *one.vector).hex(), one.answer, dict(one.documents), one.until.isoformat()]
        for one in entries
    ]
    return json.dumps(told, ensure_ascii=True).encode()


def decoded(data: bytes) -> tuple[Entry, ...]:
    """Nothing for bytes that are not ours: a cache may always be empty."""
    try:
        return tuple(
            Entry(
                struct.unpack(f"<{len(vector) // 8}f", bytes.fromhex(vector)),
                answer,
                {str(id_): int(version) for id_, version in documents.items()},
                datetime.fromisoformat(until),
            )
            for vector, answer, documents, until in json.loads(data)
        )
    except (ValueError, TypeError, KeyError, AttributeError, struct.error):
        return ()
