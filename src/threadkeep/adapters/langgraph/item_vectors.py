"""Which texts of an item are embedded, and how near items are to a question. Embedders get redacted text only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import get_text_at_path, tokenize_path

from threadkeep.errors import InvalidInput
from threadkeep.ports.embedder import Embedder, model_of

Redact = Callable[[str], str]


class ItemVectors:
    def __init__(self, embedder: Embedder, fields: Sequence[str], redact: Redact) -> None:
        self._embedder = embedder
        self._fields = tuple(fields)
        self._redact = redact
        self._model: bytes | None = None

    async def model(self) -> bytes:
        """Sixteen bytes for its name and size: vectors of two models are never compared."""
        if self._model is None:
            model = await model_of(self._embedder)
            named = f"{model.name}:{model.dimensions}".encode()
            self._model = hashlib.blake2b(named, digest_size=16).digest()
        return self._model

    def texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        """At the paths that the item names, or else the store's own; none for `index=False`."""
        if index is False:
            return []
        if index is not None and not isinstance(index, list | tuple):
            raise InvalidInput("index", f"is a {type(index).__name__}", "give a list of paths, False or None")
        found: list[str] = []
        for path in self._fields if index is None else index:  # pyright: ignore[reportUnknownVariableType]
            found += get_text_at_path(dict(value), path if path == "$" else tokenize_path(str(path)))  # pyright: ignore[reportUnknownArgumentType]
        return [self._redact(text) for text in found if text and not text.isspace()]

    async def vectors(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        rows = await self._embedder.embed(texts)
        return [row.astype("<f4").tobytes() for row in rows]

    async def nearest(self, query: str, held: Sequence[tuple[bytes, bytes]]) -> list[tuple[float, bytes]]:
        """Score and key of each item, best first; an item is as near as the nearest of its texts."""
        import numpy as np

        if not held:
            return []
        asked = (await self._embedder.embed([self._redact(query)]))[0].astype("<f4")
        matrix = np.frombuffer(b"".join(vector for _, vector in held), dtype="<f4").reshape(len(held), -1)
        best: dict[bytes, float] = {}
        for (key, _), score in zip(held, (matrix @ asked).tolist(), strict=True):
            best[key] = max(score, best.get(key, -1.0))
        return sorted(((score, key) for key, score in best.items()), key=lambda one: (-one[0], one[1]))

    async def close(self) -> None:
        await self._embedder.close()
