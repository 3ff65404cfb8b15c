"""Stored bytes, compressed where that pays. The first byte says how.

What is short is compressed against the names that all checkpoints have in common: that is half of a message's row, and
finding it again takes 2.5 µs, and 0.5 to read, against 6 and 2.5 for zstd alone at level 3, which builds tables for
every text. Long texts are worth those.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from threadkeep.errors import MissingExtra
from threadkeep.ports.stored_shapes import SHAPES

_PLAIN, _ZSTD, _ZLIB, _SHAPED = b"\x00", b"\x01", b"\x02", b"\x03"
_WORTH_TRYING = 96  # bytes
_SHORT = 1 << 10  # bytes
_QUICK, _LEVEL = -1, 3
_LARGEST = 256 << 20  # bytes; what claims to be larger was made to do harm: nothing that large is compressed here


def squeezed(data: bytes) -> bytes:
    size = len(data)
    if not _WORTH_TRYING <= size <= _LARGEST:
        return _PLAIN + data
    if size <= _SHORT and _zstd() is not None:
        shorter = _own.by_shape.compress(data)
        if len(shorter) < size * 0.85:  # else it has little in common with any message
            return _SHAPED + shorter
    how, smaller = _compressed(data)
    return how + smaller if len(smaller) < size * 0.9 else _PLAIN + data


def unsqueezed(stored: bytes) -> bytes:
    """Raises `ValueError` on bytes that were not made here."""
    how, data = stored[:1], stored[1:]
    if how == _PLAIN:
        return data
    if how == _ZLIB:
        return _inflated(data)
    if how in (_SHAPED, _ZSTD):
        return _decompressed(data, shaped=how == _SHAPED)
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
    if _zstd() is None:
        return _ZLIB, zlib.compress(data)
    return _ZSTD, _own.compressor.compress(data)


def _decompressed(data: bytes, *, shaped: bool) -> bytes:
    zstd = _zstd()
    if zstd is None:
        raise MissingExtra("langgraph", "a checkpoint that is compressed with zstd")
    try:
        if not 0 <= zstd.frame_content_size(data) <= _LARGEST:
            raise ValueError("is too large")
        return (_own.from_shape if shaped else _own.decompressor).decompress(data)
    except zstd.ZstdError as error:
        raise ValueError("is not compressed data") from error


class _Own(threading.local):
    """zstd's objects, which are not to be shared between threads; each is made when it is first used."""

    def __getattr__(self, name: str) -> Any:
        made = _MAKERS[name](_zstd())
        setattr(self, name, made)
        return made


def _shapes(zstd: Any) -> Any:
    return zstd.ZstdCompressionDict(SHAPES, dict_type=zstd.DICT_TYPE_RAWCONTENT)


def _by_shape(zstd: Any) -> Any:
    shapes = _shapes(zstd)
    shapes.precompute_compress(level=_QUICK)
    return zstd.ZstdCompressor(level=_QUICK, dict_data=shapes)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "by_shape": _by_shape,
    "from_shape": lambda zstd: zstd.ZstdDecompressor(dict_data=_shapes(zstd)),
    "compressor": lambda zstd: zstd.ZstdCompressor(level=_LEVEL),
    "decompressor": lambda zstd: zstd.ZstdDecompressor(),
}


@cache
def _zstd() -> Any:
    try:
        return import_module("zstandard")
    except ModuleNotFoundError:
        return None


_own = _Own()
