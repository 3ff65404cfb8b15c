"""HTML to headings and paragraphs, as a page is shown: no scripts, no styles, no attributes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from threadkeep.knowledge.blocks import Block, Text

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
    return _TAG.sub(_plain, _DECLARATION.sub(" ", "".join(kept)))


def _end_of(page: str, found: re.Match[str]) -> int:
    """Of a comment, a script or a style. One that never ends hides all that follows."""
    if found[1] is None:
        end = page.find("-->", found.start())
        return len(page) if end < 0 else end + 3
    if found[0].endswith("/>"):
        return found.end()
    close = _ENDS[found[1].lower()].search(page, found.end())
    return len(page) if close is None else close.end()


def _plain(found: re.Match[str]) -> str:
    if found[1] is None:
        return "&lt;"
    return f"<{found[1]}/>" if found[0].endswith("/>") else f"<{found[1]}>"
