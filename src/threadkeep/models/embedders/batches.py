"""The common part of remote embedders: batches, blank texts not sent, retries, the vector size learnt once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from threadkeep.models.embedders.shape import checked, encodable
from threadkeep.ports.embedder import Vectors
from threadkeep.resilience.retry import PAUSES, retried

AT_ONCE = 64


class Source(Protocol):
    """One request, unchecked. Raises our errors."""

    async def vectors(self, texts: list[str]) -> object: ...

    async def close(self) -> None: ...


class BatchedEmbedder:
    """An `Embedder` on a `Source`. Blank texts are not sent, since servers refuse them; their vectors are zeros."""

    def __init__(
        self,
        name: str,
        source: Source,
        *,
        dimensions: int | None = None,
        at_once: int = AT_ONCE,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self._source = source
        self._at_once = at_once
        self._pauses = pauses

    async def embed(self, texts: Sequence[str]) -> Vectors:
        given = encodable(texts)
        said = [index for index, text in enumerate(given) if text.strip()]
        found = [
            await self._batch([given[index] for index in said[start : start + self._at_once]])
            for start in range(0, len(said), self._at_once)
        ]
        size = self.dimensions or (await self._batch(["size"])).shape[1]
        vectors = np.zeros((len(given), size), np.float32)
        if found:
            vectors[said] = np.concatenate(found)
        return vectors

    async def close(self) -> None:
        await self._source.close()

    async def _batch(self, texts: list[str]) -> Vectors:
        rows = await retried(partial(self._source.vectors, texts), self._pauses)
        vectors = checked(rows, len(texts), self.dimensions, self.name)
        self.dimensions = vectors.shape[1]
        return vectors
