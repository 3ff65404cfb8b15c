"""Looking for traces of texts that must not be there: in any file, also in forms made from the text.

A trace is a needle found in the bytes themselves or in what they decode to: UTF-16, base64, hexadecimal, arrays of
byte or token numbers, compressed streams (zstd too, where `zstandard` is installed), and, in SQLite files, every cell
(packed token numbers too) and the full-text vocabulary (whose terms are stored prefix-compressed, so that their bytes
alone show nothing).
"""

from __future__ import annotations

import base64
import binascii
import bz2
import json
import lzma
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from threadkeep.errors import StoreCorrupt
from threadkeep.ports.checkpoints import SHAPES
from threadkeep.recall.normalise import fold

DecodeTokens = Callable[[list[int]], str]
UnpackIds = Callable[[bytes], list[int]]  # raises StoreCorrupt for what is no packed array

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")
_NUMBERS = re.compile(rb"\[\s*\d+(?:\s*,\s*\d+)+\s*\]")
_COMPRESSED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]|BZh[1-9]|\xfd7zXZ\x00|\x28\xb5\x2f\xfd")
_SQLITE_HEADER = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Trace:
    file: str
    form: str
    needle: str


class Traces:
    """Needles are looked for as given, in lower and upper case, and folded. Give each a digit: a full-text vocabulary
    holds words of letters alone by their stem. A needle of bytes is looked for as it is, in the same forms,
    and reported in hexadecimal.

    Token numbers are read by every one of `decode_tokens`, which give back a text for any numbers; `unpack_ids` finds
    them in the bytes of a cell.
    """

    def __init__(
        self,
        needles: Iterable[str | bytes],
        decode_tokens: Sequence[DecodeTokens] = (),
        unpack_ids: UnpackIds | None = None,
    ) -> None:
        self._needles = dict(form for needle in needles for form in _forms_of(needle))
        self._pattern = re.compile(_any_of(sorted(self._needles)))
        self._decode_tokens = decode_tokens
        self._unpack_ids = unpack_ids

    def in_folder(self, folder: Path) -> set[Trace]:
        return {trace for path in sorted(folder.rglob("*")) if path.is_file() for trace in self.in_file(path)}

    def in_file(self, path: Path) -> set[Trace]:
        data = path.read_bytes()
        found = {Trace(path.name, form, needle) for form, needle in self.in_bytes(data)}
        if data.startswith(_SQLITE_HEADER):
            found |= {Trace(path.name, form, needle) for form, needle in self._in_sqlite(path)}
        return found

    def in_bytes(self, data: bytes) -> set[tuple[str, str]]:
        """(form, needle) of everything found in the data or in what it decodes to."""
        views = [("bytes", data), *self._views(data)]
        for opened in _opened(data):
            views += [("compressed", opened), *(("compressed " + form, view) for form, view in self._views(opened))]
        return {(form, needle) for form, view in views for needle in self._matches(view)}

    def in_cell(self, data: bytes) -> set[tuple[str, str]]:
        """As `in_bytes`, for the value of a database, which may be packed token numbers."""
        packed = {
            ("packed token numbers", needle) for _, view in self._from_packed(data) for needle in self._matches(view)
        }
        return self.in_bytes(data) | packed

    def _views(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        yield "utf-16", data[::2]
        yield "utf-16", data[1::2]
        yield "base64", b"\n".join(_from_base64(run) for run in _BASE64.findall(data))
        yield "hex", b"\n".join(binascii.unhexlify(run) for run in _HEX.findall(data))
        for run in _NUMBERS.findall(data):
            yield from self._from_numbers(json.loads(run))

    def _from_numbers(self, numbers: list[int]) -> Iterator[tuple[str, bytes]]:
        if max(numbers) < 256:
            yield "byte numbers", bytes(numbers)
        for decode in self._decode_tokens:
            yield "token numbers", decode(numbers).encode("utf-8", "surrogatepass")

    def _from_packed(self, cell: bytes) -> Iterator[tuple[str, bytes]]:
        try:
            numbers = self._unpack_ids(cell) if self._unpack_ids else []
        except StoreCorrupt:
            return
        if numbers:
            yield from self._from_numbers(numbers)

    def _matches(self, data: bytes) -> Iterator[str]:
        return (self._needles[match] for match in self._pattern.findall(data))

    def _in_sqlite(self, path: Path) -> Iterator[tuple[str, str]]:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for cell in _cells(connection):
                yield from self.in_cell(cell)
            for term in _vocabulary(connection):
                for needle in self._matches(term):
                    yield "vocabulary", needle
        finally:
            connection.close()


def _forms_of(needle: str | bytes) -> Iterator[tuple[bytes, str]]:
    if isinstance(needle, bytes):
        yield needle, needle.hex()
        return
    for form in (needle, needle.lower(), needle.upper(), fold(needle), fold(needle).upper()):
        yield form.encode("utf-8", "surrogatepass"), needle


def _any_of(words: Sequence[bytes]) -> bytes:
    """A pattern for thousands of words that branches byte by byte, so that most positions are left at the first."""
    rest = [word for word in words if word]
    if not rest:
        return b""
    by_first = {first: [word[1:] for word in rest if word[0] == first] for first in {word[0] for word in rest}}
    branches = [re.escape(bytes([first])) + _any_of(tails) for first, tails in sorted(by_first.items())]
    pattern = branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
    return pattern if len(rest) == len(words) else b"(?:" + pattern + b")?"


def _from_base64(run: bytes) -> bytes:
    """At every offset: a needle may begin anywhere in the stream that was encoded, and end with it."""
    standard = run.translate(bytes.maketrans(b"-_", b"+/"))
    return b"\n".join(base64.b64decode(standard[i:] + b"A" * (-(len(standard) - i) % 4)) for i in range(4))


def _opened(data: bytes) -> Iterator[bytes]:
    for match in _COMPRESSED.finditer(data):
        stream = data[match.start() :]
        for decompressor in (zlib.decompressobj(47), bz2.BZ2Decompressor(), lzma.LZMADecompressor(), *_zstd()):
            try:
                yield decompressor.decompress(stream)
            except (zlib.error, OSError, lzma.LZMAError, *_zstd_errors()):
                continue


def _zstd() -> list[Any]:
    """What was compressed without the shapes is opened with them just as well."""
    found = _zstd_module()
    if found is None:
        return []
    shapes = found.ZstdCompressionDict(SHAPES, dict_type=found.DICT_TYPE_RAWCONTENT)
    return [found.ZstdDecompressor(dict_data=shapes).decompressobj()]


def _zstd_errors() -> list[type[Exception]]:
    found = _zstd_module()
    return [] if found is None else [found.ZstdError]


@cache
def _zstd_module() -> Any:
    try:
        return import_module("zstandard")
    except ModuleNotFoundError:
        return None


def _cells(connection: sqlite3.Connection) -> Iterator[bytes]:
    """Every text and blob of every table: a long one is spread over pages, where its bytes do not stand together."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        quoted = name.replace('"', '""')
        try:
            rows: list[tuple[Any, ...]] = connection.execute(f'SELECT * FROM "{quoted}"').fetchall()  # noqa: S608
        except sqlite3.DatabaseError:  # a virtual table whose module this interpreter lacks
            continue
        for value in (value for row in rows for value in row):
            if isinstance(value, str):
                yield value.encode("utf-8", "surrogatepass")
            elif isinstance(value, bytes):
                yield value


def _vocabulary(connection: sqlite3.Connection) -> Iterator[bytes]:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5%' AND sql NOT LIKE '%USING fts5vocab%'"
    ).fetchall()
    for (name,) in tables:
        quoted = name.replace("'", "''")
        connection.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', '{quoted}', 'row')")
        for (term,) in connection.execute("SELECT term FROM temp.vocabulary"):
            yield str(term).encode()
        connection.execute("DROP TABLE temp.vocabulary")
