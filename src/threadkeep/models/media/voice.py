"""Speech to text on this machine with Whisper base; the summary is made of the text. Needs the extra `voice`.

Good in English; in the other languages words are misheard, the more the worse the recording. It says so nowhere in the
text: whoever needs more sets a hosted model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

from threadkeep.errors import InvalidEvent
from threadkeep.models.language import detect
from threadkeep.models.media.briefly import told_briefly
from threadkeep.models.media.sound import RATE, decoded
from threadkeep.models.media.whisper_weights import loaded_model
from threadkeep.ports.media import MediaSummary, Medium

_REPEATING = 2.4  # how far a text may be squeezed: past it Whisper has begun to say one thing over and over


class _Heard(NamedTuple):
    text: str
    language: str
    milliseconds: int


class WhisperVoice:
    """Loads when it is first asked, and hears one recording at a time. `languages` are those it may take it for."""

    def __init__(self, languages: Sequence[str], most_seconds: float) -> None:
        self._languages = tuple(languages)
        self._most_seconds = most_seconds
        self._one_at_a_time = asyncio.Lock()
        self._model: Any = None

    async def summarise(self, medium: Medium) -> MediaSummary:
        async with self._one_at_a_time:
            heard = await asyncio.to_thread(self._heard, medium.file, medium.mime, medium.language)
        summary = told_briefly(heard.text, heard.language)
        return MediaSummary(summary, heard.text, heard.language, heard.milliseconds)

    async def close(self) -> None:
        self._model = None

    def _heard(self, file: BinaryIO, mime: str, language: str | None) -> _Heard:
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
        return _Heard(text, self._tag(text, spoken, language), round(len(sound) * 1_000 / RATE))

    def _spoken_language(self, sound: Any, named: str | None) -> str:
        """The talk's own if it is allowed, since a short recording tells little; or else the likeliest."""
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
