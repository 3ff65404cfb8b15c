"""Files to headings and paragraphs: Markdown, plain text, HTML, and PDF with an extra. What cannot be read says why."""

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


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or a heading of a level."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    title: str
    blocks: tuple[Block, ...]


_HEADING = re.compile(r" {0,3}(#{1,6})\s+(?=\S)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_NO_TITLE = re.compile(r"\s{4}|\s*(?:[-*+>|=]|\d{1,9}[.)]\s)")  # a list, a quotation, a table, code


def read_markdown(text: str) -> Text:
    blocks: list[Block] = []
    lines: list[str] = []
    fence = ""  # what the code we are in began with

    def end_block() -> None:
        if lines:
            blocks.append(Block("\n".join(lines).strip()))
            lines.clear()

    for line in text.split("\n"):
        heading = None if fence else _HEADING.match(line)
        if heading:
            end_block()
            blocks.append(Block(_without_closing_hashes(line[heading.end() :].strip()), len(heading[1])))
        elif not fence and (level := _level_of_title(lines, line)):
            blocks.append(Block(lines.pop().strip(), level))
        elif line.strip() or fence:
            fence = _fence_after(fence, line)
            lines.append(line)
        else:
            end_block()
    end_block()
    return Text(next((block.text for block in blocks if block.level == 1), ""), tuple(blocks))


def _level_of_title(lines: list[str], line: str) -> int:
    """Of a heading that is underlined by the row below; 0 for anything else."""
    drawn = _UNDERLINE.match(line)
    if drawn is None or len(lines) != 1 or _NO_TITLE.match(lines[0]):
        return 0
    return 1 if drawn[1][0] == "=" else 2


def _fence_after(fence: str, line: str) -> str:
    """Code ends with at least as many of the same marks, and nothing behind them."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def _without_closing_hashes(heading: str) -> str:
    text = heading.rstrip("#")
    return text.rstrip() if text != text.rstrip() or not text else heading


_UNREAD = re.compile(r"<!--|<(script|style)\b[^<>]*>", re.IGNORECASE)
_ENDS = {name: re.compile(rf"</{name}\b[^<>]*>", re.IGNORECASE) for name in ("script", "style")}
_DECLARATION = re.compile(r"<[!?][^<>]{0,2000}>")
# A value in quotation marks may hold what ends a tag elsewhere; one that is longer than this may not.
_ATTRIBUTES = r"""(?>(?:[^<>"'=]++|=\s*+(?:"[^"]{0,2000}+"|'[^']{0,2000}+')?+|["']){0,60}+)"""
_TAG = re.compile(rf"<(?:(/?[A-Za-z][^\s/<>]*+)(?:{_ATTRIBUTES}>|[^<>]*+>))?")
_IN_HEAD = frozenset({"head", "title", "meta", "link", "base", "script", "style", "noscript", "template"})
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img"}
    | {"input", "ins", "kbd", "label", "mark", "nobr", "output", "picture", "q", "rb", "rp", "rt", "ruby", "s", "samp"}
    | {"small", "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
)


def read_html(page: str) -> Text:
    parser = _Page()
    parser.feed(_with_plain_tags(page))
    parser.close()
    first = next((block.text for block in parser.blocks if block.level == 1), "")
    return Text(parser.title or first, tuple(parser.blocks))


class _Page(HTMLParser):
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
        if tag == "body" or (self._hidden_by == "head" and tag not in _IN_HEAD):
            self._hidden_by = ""
        self._in_title = self._in_title or (tag == "title" and self._hidden_by in ("", "head") and not self.title)
        if self._hidden_by:
            self._depth += tag == self._hidden_by
        elif tag in _UNSEEN:
            self._hidden_by, self._depth = tag, 1
        elif tag == "br" and self._level:
            self._text.append(" ")
        elif tag not in _INLINE:
            self._end_block()
            self._level = int(tag[1]) if re.fullmatch("h[1-6]", tag) else 0

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._hidden_by:
            self._depth -= tag == self._hidden_by
            self._hidden_by = self._hidden_by if self._depth else ""
        elif tag not in _INLINE and not (tag == "br" and self._level):
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


def _with_plain_tags(page: str) -> str:
    """Without comments, scripts, declarations and attributes, and with no `<` that begins no tag: the parser would look
    for its end again and again, for hours."""
    kept: list[str] = []
    start = 0
    while found := _UNREAD.search(page, start):
        kept.append(page[start : found.start()])
        start = _end_of(page, found)
    kept.append(page[start:])
    return _TAG.sub(_plain_tag, _DECLARATION.sub(" ", "".join(kept)))


def _end_of(page: str, found: re.Match[str]) -> int:
    """Of a comment, a script or a style. One that never ends hides all that follows."""
    if found[1] is None:
        end = page.find("-->", found.start())
        return len(page) if end < 0 else end + 3
    if found[0].endswith("/>"):
        return found.end()
    close = _ENDS[found[1].lower()].search(page, found.end())
    return len(page) if close is None else close.end()


def _plain_tag(found: re.Match[str]) -> str:
    if found[1] is None:
        return "&lt;"
    return f"<{found[1]}/>" if found[0].endswith("/>") else f"<{found[1]}>"


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
