"""A question as a vector that documents can be compared with: of the model that most of them have vectors of.

While documents are embedded anew by another model, those of the one before answer, as long as its embedder can still be
asked. An embedder that hangs must not keep the words waiting, nor be asked at every question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from threadkeep.errors import EmbedderError, EmbedderUnavailable, VectorMismatch
from threadkeep.ports.embedder import Embedder, EmbeddingModel, Vector
from threadkeep.ports.knowledge import KnowledgeVectors
from threadkeep.resilience.breaker import Breaker

_MOST_CHARACTERS = 2_000  # of a question: a longer one is a document, and its beginning tells what it is about
PATIENCE_SECONDS = 2.0
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
        self._current = embedder
        self._store = store
        self._embedder_of = embedder_of
        self._patience = patience
        self._earlier: dict[str, Embedder | None] = {}
        self._breakers: dict[str, Breaker] = {}
        self._seen: dict[str | None, tuple[float, Mapping[EmbeddingModel, int]]] = {}

    async def __call__(self, question: str, tenant: str | None = None) -> QuestionVector | None:
        """To be compared with the documents of a tenant. None where none of them has a vector yet.

        Raises `EmbedderError` when it cannot be told now.
        """
        failure: EmbedderError | None = None
        for model in await self._in_order(tenant):
            embedder = self._embedder(model)
            if embedder is None:
                continue
            try:
                return QuestionVector(model, await self._vector(embedder, model, question[:_MOST_CHARACTERS]))
            except EmbedderError as error:
                failure = error
        if failure is not None:
            raise failure
        return None

    async def close(self) -> None:
        for embedder in (self._current, *self._earlier.values()):
            if embedder is not None:
                await embedder.close()
        self._earlier.clear()

    async def _in_order(self, tenant: str | None) -> list[EmbeddingModel]:
        """The model that most documents have vectors of; of equals the current one."""
        looked, models = self._seen.get(tenant, (float("-inf"), {}))
        if not models or time.monotonic() - looked >= _LOOK_AGAIN_SECONDS:
            models = await self._store.models(tenant)
            while len(self._seen) >= _MOST_TENANTS:
                del self._seen[next(iter(self._seen))]
            self._seen[tenant] = time.monotonic(), models
        current = self._current.name
        return sorted(models, key=lambda one: (-models[one], one.name != current, one.name, one.dimensions))

    def _embedder(self, model: EmbeddingModel) -> Embedder | None:
        if model.name == self._current.name:
            return self._current
        if model.name not in self._earlier:
            self._earlier[model.name] = self._embedder_of(model.name)
        return self._earlier[model.name]

    async def _vector(self, embedder: Embedder, model: EmbeddingModel, question: str) -> Vector:
        breaker = self._breakers.setdefault(embedder.name, Breaker(f"The embedder {embedder.name}"))
        if not breaker.allows():
            raise EmbedderUnavailable(f"{embedder.name}: has not answered lately; it is asked again now and then")
        try:
            async with asyncio.timeout(self._patience):
                (vector,) = await embedder.embed([question])
        except TimeoutError:
            error = EmbedderUnavailable(f"{embedder.name}: took longer than {self._patience:g} s for a question")
            breaker.failed(error)
            raise error from None
        except EmbedderError as error:
            breaker.failed(error)
            raise
        breaker.succeeded()
        if len(vector) != model.dimensions:
            raise VectorMismatch(f"{model.name}: gives {len(vector)} numbers; the index holds {model.dimensions}")
        return vector
