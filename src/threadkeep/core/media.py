"""A recording or a picture on its way to memory: held to its limits, described, and reduced to words and facts.

The bytes are read from a file that its opener closes; nothing here writes them, or their content, anywhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from threadkeep.errors import CapabilityMissing, InvalidEvent, InvalidInput, TooLarge
from threadkeep.events import UserMessage
from threadkeep.policy.media import HEAD_BYTES, check_kind, known_type, modality_of, size_of
from threadkeep.ports.media import MediaModality, MediaSummariser, MediaSummary, Medium
from threadkeep.record import IMAGE_KIND


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
