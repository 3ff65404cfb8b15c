"""A question as a vector that documents can be compared with: of the model that most of them have vectors of.

While documents are embedded anew by another model, those of the one before answer, as long as its embedder can still be
asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from threadkeep.index.questions import PATIENCE_SECONDS, QuestionEmbedders
from threadkeep.ports.embedder import Embedder, EmbeddingModel, Vector
from threadkeep.ports.knowledge import KnowledgeVectors

_LOOK_AGAIN_SECONDS = 5.0  # which models there are changes seldom
_MOST_TENANTS = 1_000


class QuestionVector(NamedTuple):
    model: EmbeddingModel
    vector: Vector


class QuestionVectors:
    """`embedder_of` makes the embedder of an earlier model by its name, or None. Closes them all."""

    def __init__(
        self,
        embedder: Embedder,
        store: KnowledgeVectors,
        embedder_of: Callable[[str], Embedder | None] = lambda _: None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._questions = QuestionEmbedders(embedder, embedder_of, patience)
        self._store = store
        self._seen: dict[str | None, tuple[float, Mapping[EmbeddingModel, int]]] = {}

    async def __call__(self, question: str, tenant: str | None = None) -> QuestionVector | None:
        """To be compared with the documents of a tenant. None where none of them has a vector yet.

        Raises `EmbedderError` when it cannot be told now.
        """
        asked = await self._questions.vector(await self._in_order(tenant), question)
        return None if asked is None else QuestionVector(*asked)

    async def close(self) -> None:
        await self._questions.close()

    async def _in_order(self, tenant: str | None) -> list[EmbeddingModel]:
        """The model that most documents have vectors of; of equals the current one."""
        looked, models = self._seen.get(tenant, (float("-inf"), {}))
        if not models or time.monotonic() - looked >= _LOOK_AGAIN_SECONDS:
            models = await self._store.models(tenant)
            while len(self._seen) >= _MOST_TENANTS:
                del self._seen[next(iter(self._seen))]
            self._seen[tenant] = time.monotonic(), models
        current = self._questions.current.name
        return sorted(models, key=lambda one: (-models[one], one.name != current, one.name, one.dimensions))
