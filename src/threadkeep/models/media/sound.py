"""A recording's sound as numbers: one channel, 16,000 a second, and not more of it than is wanted."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any, BinaryIO

from threadkeep.errors import InvalidEvent, MissingExtra, TooLarge

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
    file.seek(0)
    try:
        with av.open(file, mode="r", format=_FORMATS[mime], **_tag_options(av)) as container:
            pieces = _pieces(av, container, round(most_seconds * RATE))
    except av.error.FFmpegError:
        raise InvalidEvent(*_UNREADABLE) from None
    if not pieces:
        raise InvalidEvent(*_UNREADABLE)
    return numpy.concatenate(pieces, dtype=numpy.float32) / numpy.float32(32_768)


def _tag_options(av: Any) -> dict[str, str]:
    """Return what keeps tags that are no UTF-8 from being an error: PyAV 19, which has no such option, reads them all.

    Python 3.12 and later get 19 from the lock, 3.11 gets 18.
    """
    return {"metadata_errors": "ignore"} if int(av.__version__.partition(".")[0]) < 19 else {}


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
