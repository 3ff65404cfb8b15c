"""The scan that the privacy tests rely on finds a planted text in every form it claims to know."""

import base64
import bz2
import gzip
import lzma
import sqlite3
import zlib
from array import array
from pathlib import Path

import pytest
import zstandard

from tests.privacy.token_readers import every_encoding
from threadkeep.adapters.langgraph.pages import squeezed
from threadkeep.errors import StoreCorrupt
from threadkeep.models.tokens import ENCODINGS, Tokenizer
from threadkeep.recall.normalise import fold, indexed_terms
from threadkeep.testing.traces import Traces


def packed(numbers: list[int]) -> bytes:
    """As an application may keep them: four bytes each."""
    return array("I", numbers).tobytes()


def unpacked(cell: bytes) -> list[int]:
    if len(cell) % 4:
        raise StoreCorrupt("no packed token numbers")
    return array("I", cell).tolist()


NEEDLE = "Zażółć-canary7f3a9c"
AROUND = "before {} after, and so on"
# Long enough that no compressor leaves it as it is.
LONG = " ".join(f"{number} green bottles" for number in range(200)) + AROUND.format(NEEDLE)
# As short values are stored; the needle is found only once it is opened.
REPEATED = f"additional_kwargs response_metadata {NEEDLE[:10]} {NEEDLE[8:]} invalid_tool_calls " + AROUND.format(NEEDLE)

PLANTED = {
    "plain": AROUND.format(NEEDLE).encode(),
    "other case": AROUND.format(NEEDLE.upper()).encode(),
    "folded": fold(AROUND.format(NEEDLE)).encode(),
    "utf-16": AROUND.format(fold(NEEDLE)).encode("utf-16-le"),
    "utf-16 at an odd offset": b"x" + AROUND.format(fold(NEEDLE)).encode("utf-16-le"),
    "base64": base64.b64encode(AROUND.format(NEEDLE).encode()),
    "base64 at another offset": base64.b64encode(b"zz" + AROUND.format(NEEDLE).encode()),
    "base64 for URLs": base64.urlsafe_b64encode(AROUND.format(NEEDLE).encode()),
    "hex": AROUND.format(NEEDLE).encode().hex().encode(),
    "byte numbers": str(list(AROUND.format(NEEDLE).encode())).encode(),
    "zlib": b"head" + zlib.compress(AROUND.format(NEEDLE).encode()),
    "gzip": b"head" + gzip.compress(AROUND.format(NEEDLE).encode()),
    "bzip2": b"head" + bz2.compress(AROUND.format(NEEDLE).encode()),
    "xz": b"head" + lzma.compress(AROUND.format(NEEDLE).encode()),
    "zstd": b"head" + zstandard.compress(LONG.encode()),
    "zstd with more behind it": zstandard.compress(LONG.encode()) + b"tail",
    "zstd that does not tell its size": zstandard.ZstdCompressor(write_content_size=False).compress(LONG.encode()),
    "zstd against the shapes of checkpoints": squeezed(REPEATED.encode()),
    "base64 inside zstd": zstandard.compress(base64.b64encode(LONG.encode())),
    "base64 inside zlib": zlib.compress(base64.b64encode(AROUND.format(NEEDLE).encode())),
}


@pytest.mark.parametrize("data", PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_text_is_found_in_every_form(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "planted").write_bytes(data)
    assert {trace.needle for trace in Traces([NEEDLE]).in_folder(tmp_path)} == {NEEDLE}


RAW = bytes(range(128, 176))
PLANTED_BYTES = {
    "as they are": b"head" + RAW,
    "base64": base64.b64encode(b"z" + RAW + b"z"),
    "base64 that ends with them": base64.b64encode(b"z" + RAW),
    "hex": RAW.hex().encode(),
    "byte numbers": str([1, 2, *RAW]).encode(),
    "zstd": zstandard.compress(LONG.encode() + RAW),
    "base64 inside zstd": zstandard.compress(base64.b64encode(LONG.encode() + RAW)),
    "zlib": zlib.compress(RAW * 3),
}


@pytest.mark.parametrize("data", PLANTED_BYTES.values(), ids=PLANTED_BYTES.keys())
def test_planted_bytes_are_found_in_every_form(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "planted").write_bytes(data)
    assert {trace.needle for trace in Traces([RAW]).in_folder(tmp_path)} == {RAW.hex()}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("stray", [[], [4_000_000_000]])
def test_token_numbers_are_decoded_by_every_tokenizer_given(encoding: str, stray: list[int], tmp_path: Path) -> None:
    numbers = Tokenizer(encoding).encode(AROUND.format(fold(NEEDLE)))
    (tmp_path / "planted").write_text(f'{{"token_data": {{"user": {numbers + stray}}}}}')
    scan = Traces([NEEDLE], decode_tokens=every_encoding())
    assert "token numbers" in {trace.form for trace in scan.in_folder(tmp_path)}


@pytest.mark.parametrize("repeated", [1, 50])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_packed_token_numbers_are_decoded(encoding: str, repeated: int, tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "planted.db")
    database.execute("CREATE TABLE turns (tokens BLOB)")
    numbers = Tokenizer(encoding).encode(AROUND.format(NEEDLE) * repeated)
    database.execute("INSERT INTO turns VALUES (?)", (packed(numbers),))
    database.commit()
    database.close()
    scan = Traces([NEEDLE], every_encoding(), unpacked)
    assert "packed token numbers" in {trace.form for trace in scan.in_folder(tmp_path)}


def test_a_word_known_only_to_a_full_text_vocabulary_is_found(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "planted.db")
    database.execute("CREATE VIRTUAL TABLE words USING fts5 (terms, content='')")
    # Terms with a common beginning: the index stores only what differs, so the bytes do not show the word.
    for word in ("canary7f3a8", "canary7f3a9c", "canary7f3a9d"):
        database.execute("INSERT INTO words (terms) VALUES (?)", (indexed_terms(word),))
    database.execute("INSERT INTO words (words) VALUES ('optimize')")
    database.commit()
    database.close()
    assert {trace.form for trace in Traces(["canary7f3a9d"]).in_folder(tmp_path)} == {"vocabulary"}


def test_a_long_cell_that_is_spread_over_pages_is_found(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "planted.db")
    database.execute("CREATE TABLE notes (body TEXT)")
    for start in range(0, 5_000, 7):  # wherever the page ends, one of these stands across it
        database.execute("INSERT INTO notes VALUES (?)", ("x" * start + NEEDLE + "y" * 9_000,))
    database.commit()
    rows = database.execute("SELECT count(*) FROM notes").fetchone()[0]
    database.close()
    assert rows > 700
    assert NEEDLE in {trace.needle for trace in Traces([NEEDLE]).in_folder(tmp_path)}


def test_what_is_planted_compressed_does_not_show_as_it_is() -> None:
    shown = [form for form, data in PLANTED.items() if "zstd" in form and NEEDLE.encode() in data]
    assert not shown


def test_an_innocent_folder_shows_no_trace(tmp_path: Path) -> None:
    (tmp_path / "innocent").write_text("canary birds sing; 7f3a9c is a colour")
    assert Traces([NEEDLE]).in_folder(tmp_path) == set()
