"""The messages nearest to a question, by the vectors that are complete.

While the messages of a store are embedded anew by another model, the vectors of the one before answer, as long as its
embedder can still be asked: a search never meets a half-built index where a whole one is at hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, TypeVar

from threadkeep.errors import EmbedderError, EmbedderUnavailable, StoreError, StoreUnavailable, VectorMismatch
from threadkeep.ports.embedder import Embedder, EmbeddingModel, Vector
from threadkeep.ports.nearest import Near
from threadkeep.ports.vectors import VectorHit, VectorIndex
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

_MOST_CHARACTERS = 2_000  # of a question: a longer one is a document, and its beginning tells what it is about
PATIENCE_SECONDS = 2.0  # with the embedder
INDEX_PATIENCE_SECONDS = 5.0
P = ParamSpec("P")
T = TypeVar("T")


class VectorNearest:
    """A `Nearest`. `embedder_of` makes the embedder of an earlier model by its name, or None. Closes them all."""

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex,
        embedder_of: Callable[[str], Embedder | None] = lambda _: None,
        patience: float = PATIENCE_SECONDS,
        index_patience: float = INDEX_PATIENCE_SECONDS,
    ) -> None:
        self._current = embedder
        self._index = index
        self._embedder_of = embedder_of
        self._patience = patience
        self._index_patience = index_patience
        self._earlier: dict[str, Embedder | None] = {}
        self._breakers: dict[str, Breaker] = {}

    async def __call__(self, scope: Scope, question: str, k: int) -> Sequence[Near]:
        failure: EmbedderError | None = None
        models = await self._asked(self._index.models_of, scope.whole_user)
        for model in self._in_order(models):
            embedder = self._embedder(model)
            if embedder is None:
                continue
            try:
                hits = await self._searched(scope, embedder, model, question, k)
                return [_near(hit, model.name) for hit in hits]
            except EmbedderError as error:
                failure = error
        if failure is not None:
            raise failure
        return ()

    async def close(self) -> None:
        await self._current.close()
        for embedder in self._earlier.values():
            if embedder is not None:
                await embedder.close()
        self._earlier.clear()

    def _in_order(self, models: Sequence[EmbeddingModel]) -> list[EmbeddingModel]:
        """Earlier models first: their vectors are forgotten as soon as the current one's are complete."""
        return sorted(models, key=lambda model: (model.name == self._current.name, model.name, model.dimensions))

    def _embedder(self, model: EmbeddingModel) -> Embedder | None:
        if model.name == self._current.name:
            return self._current
        if model.name not in self._earlier:
            self._earlier[model.name] = self._embedder_of(model.name)
        return self._earlier[model.name]

    async def _searched(
        self, scope: Scope, embedder: Embedder, model: EmbeddingModel, question: str, k: int
    ) -> Sequence[VectorHit]:
        vector = await self._vector(embedder, question[:_MOST_CHARACTERS])
        if len(vector) != model.dimensions:
            raise VectorMismatch(f"{model.name}: gives {len(vector)} numbers; the index holds {model.dimensions}")
        return await self._asked(self._index.search, scope, model, vector, k)

    async def _asked(self, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """A store of vectors that hangs must not keep the words waiting, nor be asked at every recall."""
        breaker = self._breakers.setdefault("", Breaker("The vector index"))
        if not breaker.allows():
            raise StoreUnavailable("the vector index has not answered lately; it is asked again now and then")
        try:
            async with asyncio.timeout(self._index_patience):
                answer = await question(*args, **kwargs)
        except TimeoutError:
            error = StoreUnavailable(f"the vector index did not answer within {self._index_patience:g} s")
            breaker.failed(error)
            raise error from None
        except StoreError as error:
            breaker.failed(error)
            raise
        breaker.succeeded()
        return answer

    async def _vector(self, embedder: Embedder, question: str) -> Vector:
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
        return vector


def _near(hit: VectorHit, model: str) -> Near:
    return Near(hit.conversation, hit.seq, hit.message_id, hit.score, model)
