"""Stored bytes, compressed where that pays. The first byte says how.

zstd at level 3 takes about 10 µs for a message and halves a checkpoint's row, whose version strings are mostly zeros.
"""

from __future__ import annotations

import threading
import zlib
from functools import cache
from importlib import import_module
from typing import Any

from threadkeep.errors import MissingExtra

_PLAIN, _ZSTD, _ZLIB = b"\x00", b"\x01", b"\x02"
_WORTH_TRYING = 96  # bytes
_LEVEL = 3
_LARGEST = 256 << 20  # bytes; what claims to be larger was made to do harm: nothing that large is compressed here
_own = threading.local()  # zstd's objects are not to be shared between threads


def squeezed(data: bytes) -> bytes:
    if not _WORTH_TRYING <= len(data) <= _LARGEST:
        return _PLAIN + data
    how, smaller = _compressed(data)
    return how + smaller if len(smaller) < len(data) * 0.9 else _PLAIN + data


def unsqueezed(stored: bytes) -> bytes:
    """Raises `ValueError` on bytes that were not made here."""
    how, data = stored[:1], stored[1:]
    if how == _PLAIN:
        return data
    if how == _ZLIB:
        return _inflated(data)
    if how == _ZSTD:
        return _decompressed(data)
    raise ValueError("is of no known format")


def _inflated(data: bytes) -> bytes:
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(data, _LARGEST)
    except zlib.error as error:
        raise ValueError("is not compressed data") from error
    if not inflating.eof:
        raise ValueError("is cut off, or too large")
    return found


def _compressed(data: bytes) -> tuple[bytes, bytes]:
    zstd = _zstd()
    if zstd is None:
        return _ZLIB, zlib.compress(data)
    if not hasattr(_own, "compressor"):
        _own.compressor = zstd.ZstdCompressor(level=_LEVEL)
    return _ZSTD, _own.compressor.compress(data)


def _decompressed(data: bytes) -> bytes:
    zstd = _zstd()
    if zstd is None:
        raise MissingExtra("langgraph", "a checkpoint that is compressed with zstd")
    if not hasattr(_own, "decompressor"):
        _own.decompressor = zstd.ZstdDecompressor()
    try:
        if not 0 <= zstd.frame_content_size(data) <= _LARGEST:
            raise ValueError("is too large")
        return _own.decompressor.decompress(data)
    except zstd.ZstdError as error:
        raise ValueError("is not compressed data") from error


@cache
def _zstd() -> Any:
    try:
        return import_module("zstandard")
    except ModuleNotFoundError:
        return None
