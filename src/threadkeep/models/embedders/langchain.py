"""Any LangChain `Embeddings` under a name: objects of one class may stand for different models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from threadkeep.errors import EmbedderUnavailable, ThreadkeepError
from threadkeep.models.embedders.remote import BatchedEmbedder
from threadkeep.resilience.breaker import PAUSES


class LangChainEmbeddings(Protocol):
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]: ...


class _Source:
    def __init__(self, embeddings: LangChainEmbeddings, name: str) -> None:
        self._embeddings = embeddings
        self._name = name

    async def vectors(self, texts: list[str]) -> object:
        try:
            return await self._embeddings.aembed_documents(texts)
        except ThreadkeepError:
            raise
        except Exception as error:  # each provider raises errors of its own, and what they say may quote the text
            raise EmbedderUnavailable(f"{self._name}: failed ({type(error).__name__})") from None

    async def close(self) -> None:
        """It is the application's."""


def langchain_embedder(
    embeddings: LangChainEmbeddings, name: str, *, dimensions: int | None = None, pauses: Sequence[float] = PAUSES
) -> BatchedEmbedder:
    named = f"langchain:{name}"
    return BatchedEmbedder(named, _Source(embeddings, named), dimensions=dimensions, pauses=pauses)
