"""The embedder that the settings name, how tokens are counted, and the vectors that a memory gets by them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from threadkeep.errors import EmbedderUnavailable, MissingExtra, ThreadkeepError
from threadkeep.index.nearest import QuestionEmbedders, VectorNearest
from threadkeep.memory import Stores
from threadkeep.models.embedders import EmbedderChoice, embedder_by_model, embedder_for
from threadkeep.models.tokens import BYTES, Tokenizer, estimated_count
from threadkeep.ports.index import VectorIndex
from threadkeep.ports.models import Embedder, Vectors
from threadkeep.recall.context import CountTokens
from threadkeep.settings import Settings
from threadkeep.worker.embedding import Cut, EmbedParts, InProcessEmbedding, VectorsLeft


class BorrowedEmbedder:
    """An application's own embedder: checked against the port, and left open at the end."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int | None:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        from threadkeep.models.embedders.shape import checked  # numpy comes with an extra

        try:
            vectors = await self._embedder.embed(texts)
        except ThreadkeepError:
            raise
        except Exception as error:  # it may raise anything, with the text in its message
            raise EmbedderUnavailable(f"{self.name}: failed ({type(error).__name__})") from None
        return checked(vectors, len(texts), self.dimensions, self.name)

    async def close(self) -> None:
        """It stays open: the application closes it."""


def embedder_choice(settings: Settings) -> EmbedderChoice:
    return EmbedderChoice(
        settings.embedder,
        settings.embedder_key,
        settings.embedder_timeout_seconds,
        settings.ollama_host,
        settings.ollama_port,
    )


def chosen_embedder(settings: Settings, own: Embedder | None = None) -> Embedder | None:
    """An application's `own`, or the one that the settings name. Raises `InvalidSetting` and `MissingExtra`."""
    if own is None:
        return embedder_for(embedder_choice(settings))
    if find_spec("numpy") is None:
        raise MissingExtra("embeddings", "embedder=")
    return BorrowedEmbedder(own)


def count_tokens(settings: Settings) -> CountTokens:
    """For budgets: as `TOKENIZER_NAME` counts. Where its dictionary is not here these are bytes, never too few."""
    return Tokenizer(settings.tokenizer_name).count


def about_tokens(settings: Settings) -> CountTokens:
    """For sizes that need not be exact: where the dictionary is not installed, an estimate."""
    tokenizer = Tokenizer(settings.tokenizer_name)
    return lambda text: estimated_count(text) if tokenizer.encoding == BYTES else tokenizer.count(text)


_SHORT = 400  # characters: whatever the tokenizer and the script, these fit a chunk


def with_vectors(stores: Stores, settings: Settings, *, worker: bool, embedder: Embedder | None = None) -> Stores:
    """The same stores; where there is an embedder, messages get vectors and are found by them.

    `embedder` is an application's own. Raises `InvalidSetting` and `MissingExtra`. `auto` without its extra means words
    alone.
    """
    if stores.vectors is None:
        return stores
    if not (embeds(settings) or embedder):
        named = settings.vector_store == "chroma" or "chroma_path" in settings.model_fields_set
        left = VectorsLeft(partial(_left_in_chroma, settings.chroma_path)) if named else None
        return replace(stores, embedding=left)
    lazy = LazyVectors(stores, settings, embedder)
    embedding = InProcessEmbedding(lazy.parts, lazy.close, worker=worker)
    return replace(stores, embedding=embedding, nearest=lazy.nearest)


def _left_in_chroma(location: str) -> VectorIndex | None:
    """None where there is no folder: it is not created for this. Raise `MissingExtra` where Chroma is not installed."""
    if "://" not in location and not Path(location).exists():
        return None
    if find_spec("chromadb") is None:
        raise MissingExtra("chroma", "CHROMA_PATH")
    return import_module("threadkeep.index.chroma").ChromaVectors(location)


def embeds(settings: Settings) -> bool:
    """Checked at once where an embedder was named; what may be missing in silence is not imported for that."""
    if uses_chroma(settings) and find_spec("chromadb") is None:
        raise MissingExtra("chroma", "THREADKEEP_VECTOR_STORE=chroma")
    if settings.embedder == "auto":
        return find_spec("wordllama") is not None and find_spec("numpy") is not None
    return embedder_for(embedder_choice(settings)) is not None


def uses_chroma(settings: Settings) -> bool:
    """`auto`: where `CHROMA_PATH` is set and Chroma is installed."""
    if settings.vector_store == "auto":
        return "chroma_path" in settings.model_fields_set and find_spec("chromadb") is not None
    return settings.vector_store == "chroma"


class LazyVectors:
    """Opened by the first caller, in a thread, because the imports take a while."""

    def __init__(self, stores: Stores, settings: Settings, embedder: Embedder | None = None) -> None:
        self._stores = stores
        self._settings = settings
        self._own = embedder
        self._opening = asyncio.Lock()
        self._parts: EmbedParts | None = None
        self.nearest = VectorNearest(self._for_questions)

    async def parts(self) -> EmbedParts:
        async with self._opening:
            if self._parts is None:
                self._parts = await asyncio.to_thread(self._opened)
        return self._parts

    async def close(self) -> None:
        await self.nearest.close()
        if self._parts is not None:
            await self._parts.embedder.close()
            await self._parts.stores.index.close()

    async def _for_questions(self) -> tuple[QuestionEmbedders, VectorIndex]:
        """A question is embedded without retries: recall continues with terms alone."""
        parts = await self.parts()
        choice = replace(embedder_choice(self._settings), pauses=())
        embedder = parts.embedder if self._own else embedder_for(choice) or parts.embedder
        return QuestionEmbedders(embedder, partial(embedder_by_model, choice=choice)), parts.stores.index

    def _opened(self) -> EmbedParts:
        embedder = chosen_embedder(self._settings, self._own)
        assert embedder is not None
        assert self._stores.vectors is not None
        apart = None
        if uses_chroma(self._settings):
            apart = import_module("threadkeep.index.chroma").ChromaVectors(self._settings.chroma_path)
        documents = None
        if self._stores.document_vectors is not None:
            # After a change of models, and for what was indexed while the embedder was unavailable.
            embed_documents = import_module("threadkeep.knowledge.indexing").embed_documents
            documents = partial(embed_documents, self._stores.document_vectors(), embedder)
        vectors = self._stores.vectors(apart)
        return EmbedParts(embedder, vectors, _cutting(self._settings), documents, self._stores.marked)


def _cutting(settings: Settings) -> Cut:
    reading, chunking = (import_module(f"threadkeep.knowledge.{name}") for name in ("reading", "chunking"))
    count = about_tokens(settings)

    def cut(text: str) -> list[str]:
        if len(text) <= _SHORT:
            return [text]
        _, chunks = chunking.cut([reading.Block(text)], count)
        return [chunk.content for chunk in chunks]

    return cut
