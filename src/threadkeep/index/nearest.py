"""The messages nearest to a question, by the vectors that are complete.

While the messages of a store are embedded anew by another model, the vectors of the one before are searched, as long as
its embedder still works: no search uses a half-built index where a whole one exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, TypeVar

from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.index.questions import PATIENCE_SECONDS, QuestionEmbedders
from threadkeep.ports.embedder import Embedder, EmbeddingModel
from threadkeep.ports.vectors import Near, VectorHit, VectorIndex
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

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
        self._questions = QuestionEmbedders(embedder, embedder_of, patience)
        self._index = index
        self._index_patience = index_patience
        self._breaker = Breaker("The vector index")

    async def __call__(self, scope: Scope, question: str, k: int) -> Sequence[Near]:
        models = await self._guarded(self._index.models_of, scope.whole_user)
        embedded = await self._questions.vector(self._in_order(models), question)
        if embedded is None:
            return ()
        model, vector = embedded
        hits = await self._guarded(self._index.search, scope, model, vector, k)
        return [_near(hit, model.name) for hit in hits]

    async def close(self) -> None:
        await self._questions.close()

    def _in_order(self, models: Sequence[EmbeddingModel]) -> list[EmbeddingModel]:
        """Earlier models first: their vectors are forgotten as soon as the current one's are complete."""
        current = self._questions.current.name
        return sorted(models, key=lambda model: (model.name == current, model.name, model.dimensions))

    async def _guarded(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """A vector store that hangs must not delay the terms, nor be called at every recall."""
        breaker = self._breaker
        if not breaker.allows():
            raise StoreUnavailable("the vector index has not answered lately; it is tried again now and then")
        try:
            async with asyncio.timeout(self._index_patience):
                answer = await call(*args, **kwargs)
        except TimeoutError:
            error = StoreUnavailable(f"the vector index did not answer within {self._index_patience:g} s")
            breaker.failed(error)
            raise error from None
        except StoreError as error:
            breaker.failed(error)
            raise
        breaker.succeeded()
        return answer


def _near(hit: VectorHit, model: str) -> Near:
    return Near(hit.conversation, hit.seq, hit.message_id, hit.score, model)
