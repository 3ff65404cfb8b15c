"""The default: WordLlama's token vectors, averaged. Fast, small, no server; made for English first.

Its files are read here, not by its own loader: importing that takes seconds, sets up the application's logging, and
would download what it does not find. A text's vector is the mean of its tokens', as the loader computes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from threadkeep.models.embedders.shape import encodable, of_length_one
from threadkeep.models.embedders.weights import verified_files
from threadkeep.ports.embedder import Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE, EXTRA = "wordllama", "embeddings"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
SHA256 = {
    _WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    _TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_FEW = 32  # texts shorter in all than a thread's wake-up is worth
_SHORT = 4_000


class OfflineEmbedder:
    """Loaded at its first use, half a second; then some ten thousand short texts a second on one core."""

    name = "wordllama:l2_supercat_256"
    dimensions = 256

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if "_parts" in self.__dict__ and len(texts) <= _FEW and sum(map(len, texts)) <= _SHORT:
            return self.embedded(texts)
        return await asyncio.to_thread(self.embedded, texts)

    async def close(self) -> None:
        self.__dict__.pop("_parts", None)

    def embedded(self, texts: Sequence[str]) -> Vectors:
        tokenizer, table = self._parts
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, tokens in enumerate(tokenizer.encode_batch(encodable(texts), add_special_tokens=False)):
            if tokens.ids:
                vectors[row] = table[tokens.ids].mean(axis=0)
        return of_length_one(vectors)

    @cached_property
    def _parts(self) -> tuple[Tokenizer, Vectors]:
        with _loading:
            return _loaded()


_loading = Lock()


@cache
def _loaded() -> tuple[Tokenizer, Vectors]:
    """Once for a process, however many memories it opens: 33 MB."""
    files = verified_files(PACKAGE, EXTRA, SHA256)
    # Only here: they load slowly, and most processes embed nothing.
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files[_TOKENIZER]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, load_file(files[_WEIGHTS])["embedding.weight"].astype(np.float32)
