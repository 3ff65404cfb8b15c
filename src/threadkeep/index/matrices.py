"""Owners' vectors in memory, the least recently used evicted first."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from threadkeep.ports.embedder import Vector
from threadkeep.recall.vectors import Packed, best, similarities


@dataclass(frozen=True, slots=True)
class Matrix:
    """One owner's vectors of one model, in the order of messages and chunks.

    `added` and `removed` are what the store counted when they were read.
    """

    mids: NDArray[np.int64]
    chunks: NDArray[np.int64]
    vectors: Packed
    added: int = 0
    removed: int = 0

    @property
    def last(self) -> int:
        return int(self.mids[-1]) if len(self.mids) else -1

    @property
    def bytes(self) -> int:
        return self.mids.nbytes + self.chunks.nbytes + self.vectors.scales.nbytes + self.vectors.steps.nbytes

    def extended(self, more: Matrix) -> Matrix:
        mids = np.concatenate([self.mids, more.mids])
        chunks = np.concatenate([self.chunks, more.chunks])
        return Matrix(mids, chunks, self.vectors + more.vectors, more.added, more.removed)

    def nearest(self, vector: Vector, k: int, among: Any = None) -> list[tuple[int, int, float]]:
        """Messages by their nearest chunk: `(mid, chunk, score)`, best first, equal ones newest first."""
        if not len(self.mids):
            return []
        scores = similarities(self.vectors, vector)
        if among is not None:
            scores = np.where(np.isin(self.mids, among), scores, np.float32(-2))
        starts = np.flatnonzero(np.diff(self.mids, prepend=self.mids[0] - 1))
        of_messages = np.maximum.reduceat(scores, starts)[::-1]
        found: list[tuple[int, int, float]] = []
        for turned, score in best(of_messages, k):
            if score < -1.5:  # not in `among`
                break
            start = int(starts[len(starts) - 1 - turned])
            row = start + int(np.argmax(scores[start : start + self._chunks_at(start)]))
            found.append((int(self.mids[row]), int(self.chunks[row]), score))
        return found

    def _chunks_at(self, start: int) -> int:
        return int(np.searchsorted(self.mids, [int(self.mids[start])], side="right")[0]) - start


class Matrices:
    """Safe to use from several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._kept: LRUCache[Any, Matrix] = LRUCache(most_bytes, getsizeof=lambda matrix: matrix.bytes)
        self._lock = threading.Lock()

    def get(self, key: Any) -> Matrix | None:
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Any, matrix: Matrix) -> Matrix:
        with self._lock:
            self._kept.pop(key, None)
            if matrix.bytes <= self._kept.maxsize:
                self._kept[key] = matrix
        return matrix

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
