"""Recordings and pictures: what they say in words, so that the words can be kept and the bytes need not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

MediaModality = Literal["voice", "image"]
# What a picture is of, by the model; a picture of which only the text was read is "text".
ImageKind = Literal["photo", "screenshot", "document", "drawing", "chart", "map", "text", "other"]


@dataclass(frozen=True, slots=True)
class Medium:
    """A recording or picture during one call: no implementation keeps `file`; the caller that opened it closes it."""

    file: BinaryIO = field(repr=False)  # seekable, at its beginning
    mime: str  # what the bytes are, which is what the sender said they are
    modality: MediaModality
    language: str | None = None  # the conversation's, where it is known


@dataclass(frozen=True, slots=True)
class MediaSummary:
    """`summary` is for memory, one to three sentences. `words` are for the model that answers this turn, and for
    nothing that is kept: the transcript of the recording, or the text in the picture."""

    summary: str = field(repr=False)
    words: str = field(repr=False)
    language: str | None = None
    duration_ms: int | None = None
    image_kind: ImageKind | None = None


class MediaSummariser(Protocol):
    """Raises `InvalidEvent` for what cannot be read or says nothing (its field is `data`), `TooLarge` for what is too
    long, `CapabilityMissing` where a part is not installed, and `ModelError`. Never anything that quotes the medium."""

    async def summarise(self, medium: Medium) -> MediaSummary: ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
