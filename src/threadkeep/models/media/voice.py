"""Speech to text on this machine with Whisper base; the summary is made of the text. Needs the extra `voice`.

Good in English; in the other languages words are misheard, the more the worse the recording, and the text does not say
so. A hosted model does better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

from threadkeep.errors import InvalidEvent
from threadkeep.models.language import detect
from threadkeep.models.media.briefly import shortened
from threadkeep.models.media.processes import Worker
from threadkeep.models.media.sound import RATE, decoded
from threadkeep.models.media.whisper_weights import loaded_model
from threadkeep.ports.media import MediaSummary, Medium

_SECONDS, _SLOWNESS = 60, 5  # to load, and for each second of a recording: ten times what it takes on two cores
_MEMORY_BYTES = 4_294_967_296  # of address space; it has 470 MB in use
_REPEATING = 2.4  # how far a text may be squeezed: past it Whisper has begun to say one thing over and over


class Heard(NamedTuple):
    text: str
    language: str
    milliseconds: int


class WhisperVoice:
    """Hears one recording at a time, in a process of its own that starts with the first. `languages` are those it may
    take it for."""

    def __init__(self, languages: Sequence[str], most_seconds: float) -> None:
        self._request = {"work": "hear", "languages": list(languages), "most_seconds": most_seconds}
        self._worker = hearing(most_seconds)

    async def summarise(self, medium: Medium) -> MediaSummary:
        request = self._request | {"mime": medium.mime, "language": medium.language}
        answer = await self._worker.ask(request, await asyncio.to_thread(content, medium))
        heard = Heard(answer["text"], answer["language"], answer["milliseconds"])
        summary = shortened(heard.text, heard.language)
        return MediaSummary(summary, heard.text, heard.language, heard.milliseconds)

    async def close(self) -> None:
        await self._worker.close()


def hearing(most_seconds: float) -> Worker:
    """The process that decodes and transcribes recordings; it starts at the first request."""
    return Worker("threadkeep.models.media.hearing", _SECONDS + _SLOWNESS * most_seconds, _MEMORY_BYTES)


def content(medium: Medium) -> bytes:
    medium.file.seek(0)
    return medium.file.read()


class Listener:
    """Whisper in this process; loads at its first use."""

    def __init__(self, languages: Sequence[str], most_seconds: float) -> None:
        self._languages = tuple(languages)
        self._most_seconds = most_seconds
        self._model: Any = None

    def heard(self, file: BinaryIO, mime: str, language: str | None) -> Heard:
        sound = decoded(file, mime, self._most_seconds)
        if self._model is None:
            self._model = loaded_model()
        if not _holds_speech(sound):
            raise InvalidEvent("data", "holds no speech", "speak, or send the words as text")
        spoken = self._spoken_language(sound, language)
        segments, _ = self._model.transcribe(
            sound,
            language=spoken,
            beam_size=5,
            temperature=0,  # the same words each time
            no_repeat_ngram_size=3,  # or it would say one word for the rest of a recording it cannot follow
            vad_filter=True,
            condition_on_previous_text=False,
        )
        text = " ".join(one.text.strip() for one in segments if one.compression_ratio <= _REPEATING).strip()
        if not text:
            raise InvalidEvent("data", "cannot be made out", "speak more clearly, or send the words as text")
        return Heard(text, self._tag(text, spoken, language), round(len(sound) * 1_000 / RATE))

    def _spoken_language(self, sound: Any, named: str | None) -> str:
        """The conversation's language if it is allowed, as a short recording shows little; or else the likeliest."""
        allowed = {tag.split("-")[0].lower() for tag in self._languages}
        if named is not None and named.split("-")[0].lower() in allowed:
            return named.split("-")[0].lower()
        _, _, likely = self._model.detect_language(audio=sound, vad_filter=True)
        found: dict[str, float] = dict(likely)
        return max(sorted(allowed), key=lambda one: found.get(one, 0.0))

    def _tag(self, text: str, spoken: str, named: str | None) -> str:
        """As it is written among the allowed ones: Whisper knows Chinese, and not in which script."""
        if named is not None and named.split("-")[0].lower() == spoken:
            return named
        written = [tag for tag in self._languages if tag.split("-")[0].lower() == spoken]
        found = detect(text, written).tag
        return found if found in written else written[0]


def _holds_speech(sound: Any) -> bool:
    detection: Any = import_module("faster_whisper.vad")
    return bool(detection.get_speech_timestamps(sound))
