"""A question as a vector, and the messages nearest to it, by the vectors that are complete.

While the messages of a store are embedded anew by another model, the vectors of the one before are searched, as long as
its embedder still works: no search uses a half-built index where a whole one exists. An embedder or an index that hangs
must not delay the terms, nor be called at every question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from threadkeep.errors import EmbedderError, EmbedderUnavailable, StoreError, StoreUnavailable, VectorMismatch
from threadkeep.ports.index import Near, VectorIndex
from threadkeep.ports.models import Embedder, EmbeddingModel, Vector
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

_MOST_CHARACTERS = 2_000  # of a question: a longer one is a document, and its beginning says what it is about
PATIENCE_SECONDS = 2.0


class QuestionEmbedders:
    """`embedder_of` makes the embedder of an earlier model by its name, or None. Closes them all."""

    def __init__(self, current: Embedder, embedder_of: Callable[[str], Embedder | None]) -> None:
        self.current = current
        self._embedder_of = embedder_of
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
            async with asyncio.timeout(PATIENCE_SECONDS):
                (vector,) = await embedder.embed([question])
        except TimeoutError:
            error = EmbedderUnavailable(f"{embedder.name}: took longer than {PATIENCE_SECONDS:g} s for a question")
            breaker.failed(error)
            raise error from None
        except EmbedderError as error:
            breaker.failed(error)
            raise
        breaker.succeeded()
        if len(vector) != model.dimensions:
            raise VectorMismatch(f"{model.name}: gives {len(vector)} numbers; the index holds {model.dimensions}")
        return vector


INDEX_PATIENCE_SECONDS = 5.0
P = ParamSpec("P")
T = TypeVar("T")


class VectorNearest:
    """A `Nearest`. `opening` is awaited by the first question. Closes the embedders, not the index."""

    def __init__(self, opening: Callable[[], Awaitable[tuple[QuestionEmbedders, VectorIndex]]]) -> None:
        self._opening = opening
        self._opened: tuple[QuestionEmbedders, VectorIndex] | None = None
        self._lock = asyncio.Lock()
        self._breaker = Breaker("The vector index")

    async def __call__(self, scope: Scope, question: str, k: int) -> Sequence[Near]:
        async with self._lock:
            if self._opened is None:
                self._opened = await self._opening()
        embedders, index = self._opened
        models = await self._guarded(index.models_of, scope.whole_user)
        # Earlier models first: their vectors are deleted as soon as the current one's are complete.
        models = sorted(models, key=lambda one: (one.name == embedders.current.name, one.name, one.dimensions))
        embedded = await embedders.vector(models, question)
        if embedded is None:
            return ()
        model, vector = embedded
        hits = await self._guarded(index.search, scope, model, vector, k)
        return [Near(hit.conversation, hit.seq, hit.message_id, hit.score, model.name) for hit in hits]

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened[0].close()

    async def _guarded(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """A vector store that hangs must not delay the terms, nor be called at every recall."""
        if not self._breaker.allows():
            raise StoreUnavailable("the vector index has not answered lately; it is tried again now and then")
        try:
            async with asyncio.timeout(INDEX_PATIENCE_SECONDS):
                answer = await call(*args, **kwargs)
        except TimeoutError:
            error = StoreUnavailable(f"the vector index did not answer within {INDEX_PATIENCE_SECONDS:g} s")
            self._breaker.failed(error)
            raise error from None
        except StoreError as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        return answer
