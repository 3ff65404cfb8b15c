"""Vectors as bytes, and the nearest of them.

Stored is a scale and sixteen-bit whole numbers: half of what floats take, no neighbour lost by it, and numpy reads them
far faster than half-precision floats. Search is exact: every vector of the owner is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from threadkeep.errors import VectorMismatch
from threadkeep.ports.models import EmbeddingModel, Vector, Vectors

ENCODING = "i16"  # raise the name when the bytes change: an index holds vectors of one encoding only
_STEPS = 32_767
_SCALE_BYTES = 4
_ROWS_AT_ONCE = 1_024  # a larger block goes to several threads, which costs more than it saves


@dataclass(frozen=True, slots=True)
class Packed:
    """Many vectors of one model, a quarter of a gigabyte for half a million of 256 numbers."""

    scales: NDArray[np.float32]
    steps: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.scales)

    def __add__(self, other: Packed) -> Packed:
        return Packed(np.concatenate([self.scales, other.scales]), np.concatenate([self.steps, other.steps]))


def size_in_bytes(model: EmbeddingModel) -> int:
    return _SCALE_BYTES + 2 * model.dimensions


def encode(vectors: Any, model: EmbeddingModel) -> list[bytes]:
    """Raises `VectorMismatch` for vectors that are not of the model's size, or not finite."""
    rows = fitting(vectors, model)
    scales = (np.abs(rows).max(axis=1, initial=0) / _STEPS).astype("<f4")
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(scales[:, None] > 0, np.rint(rows / scales[:, None]), 0)
    whole = np.clip(steps, -_STEPS, _STEPS).astype("<i2")
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, whole, strict=True)]


def decode(blobs: Sequence[bytes], model: EmbeddingModel) -> Packed:
    """Raises `VectorMismatch` for bytes that are no vector of the model."""
    size = size_in_bytes(model)
    if any(len(blob) != size for blob in blobs):
        raise VectorMismatch(f"the index holds a vector that is not one of {model.name} ({model.dimensions} numbers)")
    raw = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), size)
    scales = np.ascontiguousarray(raw[:, :_SCALE_BYTES]).view("<f4")[:, 0]
    return Packed(scales, np.ascontiguousarray(raw[:, _SCALE_BYTES:]).view("<i2"))


def fitting(vectors: Any, model: EmbeddingModel) -> Vectors:
    """One vector or many, as rows."""
    rows: Vectors = np.atleast_2d(np.asarray(vectors, np.float32))
    if rows.ndim != 2 or rows.shape[1] != model.dimensions:
        sized = rows.shape[-1] if rows.ndim else 0
        raise VectorMismatch(f"a vector has {sized} numbers; {model.name} has {model.dimensions}")
    if not np.isfinite(rows).all():
        raise VectorMismatch(f"a vector of {model.name} holds a number that is not finite")
    return rows


def similarities(packed: Packed, vector: Vector) -> NDArray[np.float32]:
    """The cosine of each with the vector, where all have length one.

    To six digits: what follows depends on where a row stands, and would put equal vectors in an order of its own.
    """
    scores = np.empty(len(packed), np.float32)
    for start in range(0, len(packed), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        scores[part] = packed.steps[part].astype(np.float32) @ vector
    return np.round(scores * packed.scales, 6)


def nearest(packed: Packed, vector: Vector, k: int) -> list[tuple[int, float]]:
    """Rows and their similarity, best first; equal ones in the order they are kept."""
    return best(similarities(packed, vector), k)


def best(scores: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
    if k < len(scores):
        # The k-th best may have equals: all of them stand for the choice, or the order would depend on chance.
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= threshold)
    else:
        rows = np.arange(len(scores))
    ordered = rows[np.argsort(-scores[rows], kind="stable")][:k]
    return [(int(row), float(scores[row])) for row in ordered]
