"""A question as a vector that documents can be compared with: of the model that most of them have vectors of.

While documents are embedded anew by another model, those of the one before answer, as long as its embedder still
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachetools import TTLCache

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
        self._seen: TTLCache[str | None, Mapping[EmbeddingModel, int]] = TTLCache(_MOST_TENANTS, _LOOK_AGAIN_SECONDS)

    async def __call__(self, question: str, tenant: str | None = None) -> QuestionVector | None:
        """To be compared with the documents of a tenant. None where none of them has a vector yet.

        Raises `EmbedderError` when it cannot be embedded now.
        """
        asked = await self._questions.vector(await self._in_order(tenant), question)
        return None if asked is None else QuestionVector(*asked)

    async def close(self) -> None:
        await self._questions.close()

    async def _in_order(self, tenant: str | None) -> list[EmbeddingModel]:
        """The model that most documents have vectors of; of equals the current one."""
        models = self._seen.get(tenant)
        if not models:
            models = self._seen[tenant] = await self._store.models(tenant)
        current = self._questions.current.name
        return sorted(models, key=lambda one: (-models[one], one.name != current, one.name, one.dimensions))
