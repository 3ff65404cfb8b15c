"""Recordings and pictures as they arrive: bytes to be understood here, or a client's own summary and no bytes."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

from pydantic import ConfigDict, Field

from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.events import UserMessage
from threadkeep.http.fields import Base64, Body, Language, Text
from threadkeep.policy.media import IMAGE_TYPES, VOICE_TYPES, known_type
from threadkeep.ports.media import ImageKind, MediaModality
from threadkeep.record import IMAGE_KIND

_ONE = "give `data`, or a `summary` of your own and no bytes"


class MediumBody(Body):
    """`data` to have it understood here. Or a `summary`, with what else is known of it: then nothing is sent."""

    mimeType: str
    data: Base64 | None = None
    summary: Text | None = Field(None, description="One to three sentences; the bytes then stay where they are")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    durationMs: int | None = Field(None, ge=0, le=86_400_000)
    language: Language | None = None

    def bytes_within(self, most: int, field: str) -> bytes | None:
        """None where a summary stands for them. Raises `InvalidInput` and `TooLarge`."""
        if self.data is None:
            return None
        if self.summary is not None:
            raise InvalidInput(f"{field}.summary", "stands beside data", _ONE)
        if len(self.data) // 4 * 3 - 2 > most:
            raise TooLarge(f"{field}.data", f"is over the limit of {most:,} bytes", "send a smaller file")
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"{field}.data", "is not base64", "encode the file's bytes as base64") from None

    def own_summary(self, modality: MediaModality, field: str, typed: str | None) -> UserMessage:
        """Raises `InvalidInput` where there is none."""
        if self.summary is None or not self.summary.strip():
            raise InvalidInput(f"{field}.data", "is missing", _ONE)
        summary = f"{typed}\n{self.summary}" if typed else self.summary
        return UserMessage(modality=modality, summary=summary, meta=self.facts(modality, field), language=self.language)

    def facts(self, modality: MediaModality, field: str) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "language": self.language,
            "mime": self.checked_type(modality, field),
            "durationMs": self.durationMs,
            "sha256": self.sha256,
            IMAGE_KIND: getattr(self, IMAGE_KIND, None),
        }
        return {name: value for name, value in facts.items() if value is not None}

    def checked_type(self, modality: MediaModality, field: str) -> str:
        try:
            return known_type(self.mimeType, modality)
        except InvalidInput as error:  # of a request, not of an event
            raise InvalidInput(f"{field}.{error.field}", error.problem, error.fix) from None


class AudioBody(MediumBody):
    mimeType: str = Field(description="One of " + ", ".join(VOICE_TYPES))


class ImageBody(MediumBody):
    mimeType: str = Field(description="One of " + ", ".join(IMAGE_TYPES))
    imageKind: ImageKind | None = Field(None, description="Beside a summary of your own")

    model_config = ConfigDict(json_schema_extra={"examples": [{"mimeType": "image/png", "summary": "A floor plan."}]})


Medium = tuple[Literal["audio", "image"], MediaModality, MediumBody]
