"""Files to text blocks: Markdown, plain text, HTML, and PDF with an extra. What cannot be read says why."""

from __future__ import annotations

import codecs
import logging
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from threadkeep.errors import MissingExtra, UnreadableDocument

MOST_BYTES = 20 * 1024 * 1024
MOST_PAGES = 5_000  # of a PDF
MOST_SECONDS = 120.0  # for a PDF
_HEADING = re.compile(r"(#{1,6})\s+(?=\S)")
_one_reader = Lock()
_DECLARATION = re.compile(r"<[!?][^<>]{0,2000}>")
_BROKEN_TAG = re.compile(r"<(?!/?[A-Za-z][^<>]{0,2000}>)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_BLANK_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or a heading of a level."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    title: str
    blocks: tuple[Block, ...]


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
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in data:
        raise UnreadableDocument("is not text")
    else:
        encoding = "utf-8-sig"
    try:
        return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise UnreadableDocument("is not UTF-8 text") from None


def _plain(data: bytes) -> Text:
    return Text("", tuple(Block(part.strip()) for part in _BLANK_LINES.split(decoded(data))))


def _markdown(data: bytes) -> Text:
    blocks: list[Block] = []
    lines: list[str] = []
    fenced = False

    def end_block() -> None:
        if lines:
            blocks.append(Block("\n".join(lines).strip()))
            lines.clear()

    for line in decoded(data).split("\n"):
        heading = None if fenced else _HEADING.match(line)
        if _FENCE.match(line):
            fenced = not fenced
        if heading:
            end_block()
            blocks.append(Block(_without_closing_hashes(line[heading.end() :].strip()), len(heading[1])))
        elif line.strip() or fenced:
            lines.append(line)
        else:
            end_block()
    end_block()
    return Text(next((block.text for block in blocks if block.level == 1), ""), tuple(blocks))


def _without_closing_hashes(heading: str) -> str:
    text = heading.rstrip("#")
    return text.rstrip() if text != text.rstrip() or not text else heading


class _Html(HTMLParser):
    _UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "head"})
    _INLINE = frozenset(
        {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "label", "mark", "q", "s", "small"}
        | {"span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title = ""
        self._text: list[str] = []
        self._hidden_by = ""  # the tag, and how many of the same name are open
        self._depth = 0
        self._in_title = False
        self._level = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._in_title = tag == "title" or self._in_title
        if tag == "body":
            self._hidden_by = ""
        if self._hidden_by:
            self._depth += tag == self._hidden_by
        elif tag in self._UNSEEN:
            self._hidden_by, self._depth = tag, 1
        elif tag not in self._INLINE:
            self._end_block()
            self._level = int(tag[1]) if re.fullmatch("h[1-6]", tag) else 0

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._hidden_by:
            self._depth -= tag == self._hidden_by
            self._hidden_by = self._hidden_by if self._depth else ""
        elif tag not in self._INLINE:
            self._end_block()
            self._level = 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._hidden_by:
            self._text.append(data)

    def _end_block(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text:
            self.blocks.append(Block(text, self._level))

    def close(self) -> None:
        super().close()
        self._end_block()


def _with_whole_tags(page: str) -> str:
    """Without comments and declarations, and with no `<` that begins no tag: the parser would look for its end again
    and again, for hours."""
    kept: list[str] = []
    start = 0
    while (comment := page.find("<!--", start)) >= 0:
        kept.append(page[start:comment])
        end = page.find("-->", comment)
        start = len(page) if end < 0 else end + 3
    kept.append(page[start:])
    return _BROKEN_TAG.sub("&lt;", _DECLARATION.sub(" ", "".join(kept)))


def _html(data: bytes) -> Text:
    parser = _Html()
    parser.feed(_with_whole_tags(decoded(data)))
    parser.close()
    first = next((block.text for block in parser.blocks if block.level == 1), "")
    return Text(parser.title or first, tuple(parser.blocks))


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
