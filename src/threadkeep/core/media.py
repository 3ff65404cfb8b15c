"""A recording or a picture on its way to memory: checked against its limits and its declared type, and described.

The bytes are read from a file that its opener closes; nothing here writes them, or their content, anywhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from threadkeep.errors import CapabilityMissing, InvalidEvent, InvalidInput, TooLarge
from threadkeep.events import UserMessage
from threadkeep.model import IMAGE_KIND
from threadkeep.ports.models import MediaModality, MediaSummariser, MediaSummary, Medium


@dataclass(frozen=True, slots=True)
class MediaLimits:
    voice_bytes: int = 4_194_304
    image_bytes: int = 4_194_304
    image_pixels: int = 16_000_000

    def bytes_of(self, modality: MediaModality) -> tuple[int, str]:
        """And the setting that says so."""
        if modality == "voice":
            return self.voice_bytes, "THREADKEEP_MAX_AUDIO_BYTES"
        return self.image_bytes, "THREADKEEP_MAX_IMAGE_BYTES"


@dataclass(frozen=True, slots=True)
class Understood:
    """`event` is what memory is given. `words` are for the model that answers this turn, in memory only."""

    event: UserMessage
    words: str = field(repr=False)


class Media:
    """Many at once; each summariser says for itself how many it looks at. One that is absent is turned off."""

    def __init__(self, summarisers: Mapping[MediaModality, MediaSummariser], limits: MediaLimits | None = None) -> None:
        self._summarisers = dict(summarisers)
        self._limits = limits or MediaLimits()

    async def understood(
        self,
        data: bytes | BinaryIO,
        mime: str,
        *,
        language: str | None = None,
        typed: str | None = None,
        inside: str = "",
    ) -> Understood:
        """`mime` is what the sender calls it, `language` the conversation's, `typed` what was written beside a picture.

        Raises `InvalidEvent` and `TooLarge`, naming `data` or `mimeType` of the field `inside`, for what is not what it
        is called, cannot be read, is too large or says nothing; `CapabilityMissing` where no model can look at it; and
        `ModelError`. Nothing has been stored then.
        """
        try:
            checked = known_type(mime)
            file = io.BytesIO(data) if isinstance(data, bytes) else data
            digest = await asyncio.to_thread(self._checked, file, checked)
            medium = Medium(file, checked, modality_of(checked), language)
            file.seek(0)
            found = await self._summariser(medium.modality).summarise(medium)
        except InvalidInput as error:
            raise error.inside(inside) if inside else error from None
        return _understood(found, medium, digest, typed)

    async def close(self) -> None:
        for one in self._summarisers.values():
            await one.close()

    def _summariser(self, modality: MediaModality) -> MediaSummariser:
        if modality not in self._summarisers:
            raise CapabilityMissing(f"{_PLURAL[modality]} are not understood here: send words, or a summary")
        return self._summarisers[modality]

    def _checked(self, file: BinaryIO, mime: str) -> str:
        """The SHA-256 of what passed."""
        modality = modality_of(mime)
        most, setting = self._limits.bytes_of(modality)
        if file.seek(0, io.SEEK_END) > most:
            raise TooLarge("data", f"is over the limit of {most:,} bytes", f"send a smaller file ({setting})")
        file.seek(0)
        check_kind(file.read(HEAD_BYTES), mime)
        if modality == "image":
            self._check_pixels(file, mime)
        file.seek(0)
        digest = hashlib.sha256()
        while piece := file.read(_PIECE):
            digest.update(piece)
        return digest.hexdigest()

    def _check_pixels(self, file: BinaryIO, mime: str) -> None:
        size = size_of(file, mime)
        if size is None or 0 in size:
            raise InvalidEvent("data", "cannot be read as a picture", "send it as it was taken")
        if size[0] * size[1] > self._limits.image_pixels:
            fix = f"send at most {self._limits.image_pixels:,} pixels (THREADKEEP_MAX_IMAGE_PIXELS)"
            raise TooLarge("data", "is too large a picture", fix)


_PIECE = 65_536
_PLURAL: dict[MediaModality, str] = {"voice": "recordings", "image": "pictures"}


def _understood(found: MediaSummary, medium: Medium, digest: str, typed: str | None) -> Understood:
    facts = {
        "language": found.language,
        "mime": medium.mime,
        "durationMs": found.duration_ms,
        "sha256": digest,
        IMAGE_KIND: found.image_kind,
    }
    kept = {name: value for name, value in facts.items() if value is not None}
    summary, words = found.summary, found.words
    if typed:
        summary, words = f"{typed}\n{summary}", f"{typed}\n{words}"
    event = UserMessage(modality=medium.modality, summary=summary, meta=kept, language=found.language)
    return Understood(event, words)


VOICE_TYPES = ("audio/webm", "audio/ogg", "audio/wav", "audio/mpeg", "audio/mp4", "audio/flac")
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp")
HEAD_BYTES = 64

_ALIASES = {
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/x-flac": "audio/flac",
    "audio/opus": "audio/ogg",
    "image/jpg": "image/jpeg",
}
_SIGNATURES: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("audio/wav", re.compile(rb"RIFF.{4}WAVE", re.DOTALL)),
    ("audio/ogg", re.compile(rb"OggS")),
    ("audio/webm", re.compile(rb"\x1a\x45\xdf\xa3")),
    ("audio/flac", re.compile(rb"fLaC")),
    ("audio/mp4", re.compile(rb".{4}ftyp(?!avif|heic|heif|mif1)", re.DOTALL)),
    ("audio/mpeg", re.compile(rb"ID3|\xff[\xf2\xf3\xfa\xfb]")),
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/bmp", re.compile(rb"BM.{4}\x00\x00\x00\x00", re.DOTALL)),
)


def known_type(declared: str, modality: MediaModality | None = None) -> str:
    """The type in its usual spelling, without parameters. Raises `InvalidEvent` naming `mimeType`."""
    bare = declared.partition(";")[0].strip().lower()
    bare = _ALIASES.get(bare, bare)
    known = {"voice": VOICE_TYPES, "image": IMAGE_TYPES, None: (*VOICE_TYPES, *IMAGE_TYPES)}[modality]
    if bare not in known:
        raise InvalidEvent("mimeType", "is not a kind of medium that is understood", f"use one of {', '.join(known)}")
    return bare


def modality_of(mime: str) -> MediaModality:
    return "voice" if mime.startswith("audio/") else "image"


def sniffed(head: bytes) -> str | None:
    """None for what is none of ours."""
    return next((mime for mime, form in _SIGNATURES if form.match(head)), None)


def check_kind(head: bytes, mime: str) -> None:
    """Raises `InvalidEvent` for a medium that is not what it is called."""
    if not head:
        raise InvalidEvent("data", "is empty", "send the file's bytes")
    found = sniffed(head)
    if found is None:
        raise InvalidEvent("data", f"does not begin as {mime} does", "send the file as it was recorded or taken")
    if found != mime:
        raise InvalidEvent("mimeType", f"is {mime}, and the bytes are {found}", f"call it {found}")


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
