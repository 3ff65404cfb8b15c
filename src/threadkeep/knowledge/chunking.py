"""Blocks to chunks of 200–512 tokens, cut where the text is: at headings, paragraphs, sentences, and only then words.

Chunks are what is found; the part around them is what is shown. A chunk begins with the headings it stands under, and
where it continues under others, they stand in it, as in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from threadkeep.knowledge.reading import Block
from threadkeep.ports.knowledge import BETWEEN_HEADINGS, Chunk, Part

CountTokens = Callable[[str], int]
CHUNKER_VERSION = 4  # raise it when chunks of any text change, or their terms alone: documents are then cut anew
SMALLEST, LARGEST = 200, 512
_CHUNKS_IN_A_PART = 4
_LONG_TOKEN = 16  # characters: a text longer than so many for each token there is room for is not even counted
_PART_LEVEL = 2  # a heading this high begins a new part
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？；])|\n")


Headings = tuple[Block, ...]


@dataclass(slots=True)
class _Piece:
    """A stretch of text that stays together; `headings` are those it stands under. No text: a heading by itself."""

    text: str
    tokens: int
    headings: Headings
    heading_tokens: int
    begins_part: bool = False


@dataclass(slots=True)
class _Group:
    pieces: list[_Piece] = field(default_factory=list[_Piece])

    @property
    def tokens(self) -> int:
        """With those of the headings in it, and of the marks before these; not of the one it stands under."""
        inside = [
            piece.heading_tokens + 1 for before, piece in pairwise(self.pieces) if piece.headings != before.headings
        ]
        return sum(piece.tokens for piece in self.pieces) + sum(inside)

    @property
    def heading(self) -> str:
        return _path(self.pieces[0].headings)

    def text(self, before: Headings) -> str:
        """As it continues after something that stands under `before`."""
        texts: list[str] = []
        for piece in self.pieces:
            if piece.headings != before:
                texts.append(_marked(before, piece.headings))
            texts.append(piece.text)
            before = piece.headings
        return "\n\n".join(text for text in texts if text)


def cut(blocks: Sequence[Block], count: CountTokens) -> tuple[tuple[Part, ...], tuple[Chunk, ...]]:
    groups = _groups(list(_pieces(blocks, count)), count)
    parts: list[Part] = []
    chunks: list[Chunk] = []
    waiting: list[_Group] = []

    def end_part() -> None:
        if waiting:
            parts.append(Part(waiting[0].heading, _whole(waiting)))
            waiting.clear()

    for group in groups:
        if group.pieces[0].begins_part or len(waiting) == _CHUNKS_IN_A_PART:
            end_part()
        waiting.append(group)
        texts = (group.heading, group.text(group.pieces[0].headings))
        chunks.append(Chunk(len(parts), "\n\n".join(text for text in texts if text)))
    end_part()
    return tuple(parts), tuple(chunks)


def _whole(groups: Sequence[_Group]) -> str:
    before = groups[0].pieces[0].headings
    texts: list[str] = []
    for group in groups:
        texts.append(group.text(before))
        before = group.pieces[-1].headings
    return "\n\n".join(text for text in texts if text) or before[-1].text


def _marked(before: Headings, headings: Headings) -> str:
    """Those of the headings that were not there before; the last one where all of them were."""
    known = len(list(takewhile(lambda both: both[0] == both[1], zip(before, headings, strict=False))))
    return "\n".join(f"{'#' * one.level} {one.text}" for one in headings[known:] or headings[-1:])


def _path(headings: Headings) -> str:
    return BETWEEN_HEADINGS.join(one.text for one in headings)


def _pieces(blocks: Sequence[Block], count: CountTokens) -> Iterator[_Piece]:
    under: list[Block] = []
    begins_part, bare = True, False
    for block in (*blocks, None):
        if bare and (block is None or 0 < block.level <= under[-1].level):
            yield _Piece("", 0, tuple(under), count(_path(tuple(under))), begins_part)
            begins_part = False
        if block is None:
            return
        bare = block.level > 0
        if bare:
            while under and under[-1].level >= block.level:
                under.pop()
            under.append(block)
            begins_part = begins_part or block.level <= _PART_LEVEL
            continue
        headings = tuple(under)
        above = count(_path(headings))
        for text in _fitting(block.text, max(LARGEST // 2, LARGEST - above), count):
            yield _Piece(text, count(text), headings, above, begins_part)
            begins_part = False


def _fitting(text: str, room: int, count: CountTokens) -> Iterator[str]:
    """The text if there is room for it, otherwise its sentences, otherwise stretches of it."""
    if len(text) <= room * _LONG_TOKEN and count(text) <= room:
        yield text
        return
    sentences = [part for part in _SENTENCE_ENDS.split(text) if part and part.strip()]
    if len(sentences) > 1:
        yield from _packed([one for sentence in sentences for one in _fitting(sentence, room, count)], room, count)
        return
    middle = len(text) // 2
    blank = text.find(" ", middle)
    at = blank if 0 <= blank < len(text) * 3 // 4 else middle
    for half in (text[:at], text[at:]):
        yield from _fitting(half.strip(), room, count)


def _packed(sentences: Sequence[str], room: int, count: CountTokens) -> Iterator[str]:
    """Each is counted once, with a token for the blank before it: counting what they make together takes for ever."""
    held: list[str] = []
    size = 0
    for sentence in sentences:
        tokens = count(sentence) + 1
        if held and size + tokens > room:
            yield " ".join(held)
            held, size = [], 0
        held.append(sentence.strip())
        size += tokens
    if held:
        yield " ".join(held)


def _groups(pieces: list[_Piece], count: CountTokens) -> list[_Group]:
    groups: list[_Group] = []
    for piece in pieces:
        last = groups[-1] if groups else None
        if last is None or not _belongs(last, piece, count):
            groups.append(_Group([piece]))
        else:
            last.pieces.append(piece)
    if len(groups) > 1 and groups[-1].tokens < SMALLEST:
        _even_out(groups, count)
    return groups


def _belongs(group: _Group, piece: _Piece, count: CountTokens) -> bool:
    """Into what is still small, also across a heading; into what is large enough, only under the same one."""
    if not _fits(_Group([*group.pieces, piece]), count):
        return False
    return group.tokens < SMALLEST or piece.headings == group.pieces[-1].headings


def _fits(group: _Group, count: CountTokens) -> bool:
    """With the headings it begins with, and a token for each end of a paragraph."""
    return group.tokens + count(group.heading) + len(group.pieces) - 1 <= LARGEST


def _even_out(groups: list[_Group], count: CountTokens) -> None:
    """A last chunk that is too small takes from the one before, or goes into it."""
    last, before = groups[-1], groups[-2]
    together = _Group([*before.pieces, *last.pieces])
    if _fits(together, count):
        groups[-2:] = [together]
        return
    while last.tokens < SMALLEST and len(before.pieces) > 1:
        moved = before.pieces[-1]
        if before.tokens - moved.tokens < SMALLEST or not _fits(_Group([moved, *last.pieces]), count):
            return
        last.pieces.insert(0, before.pieces.pop())
