"""How large a picture is by its first bytes, before anything unfolds it: a small file may be a huge picture."""

from __future__ import annotations

import struct
from typing import BinaryIO

_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD8)))
_MOST_SEGMENTS = 1_000


def size_of(file: BinaryIO, mime: str) -> tuple[int, int] | None:
    """Width and height; None where the file does not say, and then it is no sound picture. Leaves `file` anywhere."""
    file.seek(0)
    try:
        return _jpeg(file) if mime == "image/jpeg" else _fixed(file.read(64), mime)
    except (struct.error, ValueError, OSError):  # it ends too early
        return None


def _fixed(head: bytes, mime: str) -> tuple[int, int] | None:
    if mime == "image/png":
        return struct.unpack_from(">II", head, 16)
    if mime == "image/gif":
        return struct.unpack_from("<HH", head, 6)
    if mime == "image/bmp":
        width, height = struct.unpack_from("<ii", head, 18)
        return abs(width), abs(height)
    return _webp(head) if mime == "image/webp" else None


def _webp(head: bytes) -> tuple[int, int] | None:
    form = head[12:16]
    if form == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(file: BinaryIO) -> tuple[int, int] | None:
    """Segment by segment, up to the one that opens the picture itself."""
    file.seek(2)
    for _ in range(_MOST_SEGMENTS):
        mark, kind = file.read(2)
        if mark != 0xFF:
            return None
        if kind == 0xFF:  # filling
            file.seek(-1, 1)
        elif kind in _START_OF_FRAME:
            height, width = struct.unpack(">3xHH", file.read(7))
            return width, height
        elif kind not in _WITHOUT_LENGTH:
            (length,) = struct.unpack(">H", file.read(2))
            file.seek(length - 2, 1)
    return None
