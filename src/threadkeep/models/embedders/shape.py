"""What every embedder's answer goes through: the right number of rows, of the right size, finite, of length one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from threadkeep.errors import EmbedderRefused, VectorMismatch
from threadkeep.ports.models import Vectors


def checked(rows: Any, texts: int, dimensions: int | None, name: str) -> Vectors:
    """Raises `EmbedderRefused` for what is no matrix of numbers, `VectorMismatch` for vectors of another size."""
    try:
        vectors = np.array(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbedderRefused(f"{name}: answered with something that is no list of vectors") from None
    if vectors.ndim != 2 or len(vectors) != texts or not vectors.shape[1]:
        shape = f"{len(vectors)} vectors" if vectors.ndim == 2 else "something that is no list of vectors"
        raise EmbedderRefused(f"{name}: answered with {shape} for {texts} texts")
    if dimensions is not None and vectors.shape[1] != dimensions:
        raise VectorMismatch(f"{name}: answered with vectors of {vectors.shape[1]} numbers, not of {dimensions}")
    if not np.isfinite(vectors).all():
        raise EmbedderRefused(f"{name}: answered with numbers that are not finite")
    return of_length_one(vectors)


def of_length_one(vectors: Vectors) -> Vectors:
    """All zeros stay so: such a vector resembles nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def encodable(texts: Sequence[str]) -> list[str]:
    """Lone surrogates, which no tokenizer takes and no JSON carries, become question marks."""
    return [text.encode("utf-8", "replace").decode() for text in texts]
