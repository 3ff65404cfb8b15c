"""Text to vectors. Whatever the model, a vector carries its name and size: those of two models are never compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # one row for each text, of length one; of a text that says nothing, all zeros
    Vector = NDArray[np.float32]
else:  # numpy comes with an extra
    Vectors = Vector = Any


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The stamp on every vector."""

    name: str
    dimensions: int


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Of the model with its provider, `ollama:bge-m3`: the same name promises the same vectors."""
        ...

    @property
    def dimensions(self) -> int | None:
        """None until the first answer of a server whose model is not known here."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in order. Give it redacted text only: some embedders send it to a server.

        Raises `EmbedderUnavailable` when a retry can help, `EmbedderRefused` when it cannot, and `VectorMismatch` for
        vectors of another size than the model's.
        """
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...


async def model_of(embedder: Embedder) -> EmbeddingModel:
    """The embedder's name and size. Embeds a text where the size is not known yet."""
    if embedder.dimensions is None:
        return EmbeddingModel(embedder.name, len((await embedder.embed(["size"]))[0]))
    return EmbeddingModel(embedder.name, embedder.dimensions)
