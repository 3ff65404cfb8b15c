"""Markdown to headings and paragraphs. Everything else it can say is left as it is written."""

from __future__ import annotations

import re

from threadkeep.knowledge.blocks import Block, Text

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
