"""A vector store outside the archive's database, kept consistent with the archive.

It knows nothing of erasures. So its hits are looked up in the archive, messages are looked up there once more after
they were embedded, and what a killed process may have left is deleted when the next one starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from threadkeep.model import Erased
from threadkeep.ports.index import (
    Backlog,
    EmbedFailed,
    MessageKey,
    MessageVectors,
    Span,
    VectorHit,
    VectorIndex,
    VectorStores,
    Waiting,
)
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.scope import Scope

_PAGE = 500


class ListingIndex(VectorIndex, Protocol):
    """One that can list what it holds."""

    async def held(self, model: EmbeddingModel, messages: Sequence[MessageKey]) -> set[MessageKey]: ...

    async def page(self, offset: int, size: int) -> Sequence[MessageKey] | None: ...


class ExternalVectors:
    def __init__(self, index: ListingIndex, archive: Backlog) -> None:
        self._index = index
        self._archive = archive

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        """Erasing deletes in the archive first and here after, so either it or this check finds the vectors."""
        await self._index.upsert(model, messages)
        erased = await self._erased([MessageKey(one.scope, one.message_id) for one in messages])
        for scope, message_id in erased:
            await self._index.delete(scope, message_id)
        return len(messages) - len(erased)

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        hits = await self._index.search(scope, model, vector, k)
        keys = [MessageKey(scope.with_conversation(hit.conversation), hit.message_id) for hit in hits]
        placed = zip(hits, await self._archive.seqs(keys), strict=True)
        return tuple(replace(hit, seq=seq) for hit, seq in placed if seq is not None)

    async def delete(self, scope: Scope, message_id: str) -> int:
        return await self._index.delete(scope, message_id)

    async def erase(self, scope: Scope) -> Erased:
        return await self._index.erase(scope)

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        return await self._index.models(scope)

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        return await self._index.models_of(user)

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._index.forget_model(model)

    async def tidy(self) -> int:
        """Delete what the archive does not hold; how many messages that were."""
        erased: set[MessageKey] = set()
        offset = 0
        while (page := await self._index.page(offset, _PAGE)) is not None:
            erased |= set(await self._erased(page))
            offset += _PAGE
        for scope, message_id in erased:
            await self._index.delete(scope, message_id)
        return len(erased)

    async def close(self) -> None:
        await self._index.close()

    async def _erased(self, messages: Sequence[MessageKey]) -> list[MessageKey]:
        seqs = await self._archive.seqs(messages)
        return [message for message, seq in zip(messages, seqs, strict=True) if seq is None]


class ExternalBacklog:
    """`archive` lists the messages, `index` those of them it has."""

    def __init__(self, index: ListingIndex, archive: Backlog) -> None:
        self._index = index
        self._archive = archive

    async def newest(self) -> int:
        return await self._archive.newest()

    async def waiting(self, model: EmbeddingModel, span: Span, limit: int) -> Sequence[Waiting]:
        found: list[Waiting] = []
        upto = span.upto
        while len(found) < limit:
            page = await self._archive.waiting(model, Span(span.after, upto), _PAGE)
            held = await self._index.held(model, [one.key for one in page])
            found += [one for one in page if one.key not in held]
            if len(page) < _PAGE:
                break
            upto = page[-1].number - 1
        return found[:limit]

    async def count(self, model: EmbeddingModel) -> int:
        counted, upto = 0, await self._archive.newest()
        while page := await self._archive.waiting(model, Span(0, upto), _PAGE):
            counted += len(page) - len(await self._index.held(model, [one.key for one in page]))
            upto = page[-1].number - 1
        return counted

    async def seqs(self, messages: Sequence[MessageKey]) -> Sequence[int | None]:
        return await self._archive.seqs(messages)

    async def give_up(self, model: EmbeddingModel, reasons: Mapping[MessageKey, str]) -> None:
        await self._archive.give_up(model, reasons)

    async def given_up(self, limit: int) -> Sequence[EmbedFailed]:
        return await self._archive.given_up(limit)

    async def forgive(self) -> int:
        return await self._archive.forgive()


def external_stores(index: ListingIndex, archive: VectorStores) -> VectorStores:
    """Put `index` where the archive's own would be."""
    vectors = ExternalVectors(index, archive.backlog)
    return replace(archive, index=vectors, backlog=ExternalBacklog(index, archive.backlog), tidy=vectors.tidy)
