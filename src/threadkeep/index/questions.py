"""A question as a vector of the current model, or of one before it.

An embedder that hangs must not delay the terms, nor be called at every question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from threadkeep.errors import EmbedderError, EmbedderUnavailable, VectorMismatch
from threadkeep.ports.embedder import Embedder, EmbeddingModel, Vector
from threadkeep.resilience.breaker import Breaker

_MOST_CHARACTERS = 2_000  # of a question: a longer one is a document, and its beginning says what it is about
PATIENCE_SECONDS = 2.0


class QuestionEmbedders:
    """`embedder_of` makes the embedder of an earlier model by its name, or None. Closes them all."""

    def __init__(
        self,
        current: Embedder,
        embedder_of: Callable[[str], Embedder | None] = lambda _: None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.current = current
        self._embedder_of = embedder_of
        self._patience = patience
        self._earlier: dict[str, Embedder | None] = {}
        self._breakers: dict[str, Breaker] = {}

    async def vector(self, models: Iterable[EmbeddingModel], question: str) -> tuple[EmbeddingModel, Vector] | None:
        """By the first of the models whose embedder answers. None where none of them has one.

        Raises the `EmbedderError` of the last that failed.
        """
        failure: EmbedderError | None = None
        for model in models:
            embedder = self._embedder(model)
            if embedder is None:
                continue
            try:
                return model, await self._embedded(embedder, model, question[:_MOST_CHARACTERS])
            except EmbedderError as error:
                failure = error
        if failure is not None:
            raise failure
        return None

    async def close(self) -> None:
        for embedder in (self.current, *self._earlier.values()):
            if embedder is not None:
                await embedder.close()
        self._earlier.clear()

    def _embedder(self, model: EmbeddingModel) -> Embedder | None:
        if model.name == self.current.name:
            return self.current
        if model.name not in self._earlier:
            self._earlier[model.name] = self._embedder_of(model.name)
        return self._earlier[model.name]

    async def _embedded(self, embedder: Embedder, model: EmbeddingModel, question: str) -> Vector:
        breaker = self._breakers.setdefault(embedder.name, Breaker(f"The embedder {embedder.name}"))
        if not breaker.allows():
            raise EmbedderUnavailable(f"{embedder.name}: has not answered lately; it is tried again now and then")
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
