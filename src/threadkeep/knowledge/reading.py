"""Files to text blocks: Markdown, plain text, HTML, and PDF with an extra. What cannot be read says why."""

from __future__ import annotations

import codecs
import logging
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from threadkeep.errors import MissingExtra, UnreadableDocument
from threadkeep.knowledge.blocks import Block, Text
from threadkeep.knowledge.html import read_html
from threadkeep.knowledge.markdown import read_markdown

MOST_BYTES = 20 * 1024 * 1024
MOST_PAGES = 5_000  # of a PDF
MOST_SECONDS = 120.0  # for a PDF
_one_reader = Lock()
# The marks of UTF-32 begin with those of UTF-16.
_MARKED = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_BLANK_LINES = re.compile(r"\n\s*\n")


def read_document(path: Path, most_bytes: int = MOST_BYTES) -> Text:
    """Raises `UnreadableDocument` with the reason, and `MissingExtra` for a PDF without the extra."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableDocument(f"is no {', '.join(sorted(READERS))}")
    found = reader(bytes_of(path, most_bytes))
    blocks = tuple(block for block in found.blocks if block.text.strip())
    if not any(block.level == 0 for block in blocks):
        raise UnreadableDocument("holds no text")
    return Text(found.title.strip() or path.stem, blocks)


def bytes_of(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """As they stood at one moment: a file that changes or goes while it is read is not taken half."""
    try:
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            if before.st_size > most_bytes:
                raise UnreadableDocument(f"has {before.st_size:,} bytes; the limit is {most_bytes:,}")
            data = file.read(most_bytes + 1)
            after = os.fstat(file.fileno())
    except FileNotFoundError:
        raise UnreadableDocument("went away while the folder was read") from None
    except OSError as error:
        raise UnreadableDocument(f"cannot be read ({error.strerror or type(error).__name__})") from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) != before.st_size:
        raise UnreadableDocument("changed while it was read")
    return data


def decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        raise UnreadableDocument("is not text")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UnreadableDocument("is not UTF-8 text") from None
    if "\0" in text:
        raise UnreadableDocument("is not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _plain(data: bytes) -> Text:
    return Text("", tuple(Block(part.strip()) for part in _BLANK_LINES.split(decoded(data))))


def _markdown(data: bytes) -> Text:
    return read_markdown(decoded(data))


def _html(data: bytes) -> Text:
    return read_html(decoded(data))


@contextmanager
def _unsaid(library: str) -> Generator[None]:
    """What it logs quotes what it cannot read."""
    log = logging.getLogger(library)
    with _one_reader:
        level = log.level
        log.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            log.setLevel(level)


def _pages(reader: Any) -> list[str]:
    """A small file may name one page a million times."""
    if len(reader.pages) > MOST_PAGES:
        raise UnreadableDocument(f"has {len(reader.pages):,} pages; the limit is {MOST_PAGES:,}")
    ends, pages = time.monotonic() + MOST_SECONDS, list[str]()
    for page in reader.pages:
        if time.monotonic() > ends:
            raise UnreadableDocument(f"takes longer than {MOST_SECONDS:g} s to read")
        pages.append(page.extract_text())
    return pages


def _pdf(data: bytes) -> Text:
    try:
        from pypdf import PdfReader
    except ModuleNotFoundError:
        raise MissingExtra("pdf", "reading PDF documents") from None
    try:
        with _unsaid("pypdf"):
            reader = PdfReader(BytesIO(data))
            if reader.is_encrypted:
                raise UnreadableDocument("is encrypted")
            pages = _pages(reader)
            title = str((reader.metadata.title if reader.metadata else None) or "")
    except UnreadableDocument:
        raise
    except Exception as error:  # a broken PDF breaks its reader in any way there is
        raise UnreadableDocument(f"is not a sound PDF ({type(error).__name__})") from None
    blocks = [Block(part.strip()) for page in pages for part in _BLANK_LINES.split(page)]
    return Text(title, tuple(blocks))


READERS: dict[str, Callable[[bytes], Text]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _plain,
    ".text": _plain,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
}
