"""What a medium is by its bytes, and how large a picture says it is."""

import io
import struct

import pytest

from tests.media.made import blank
from threadkeep.core.media import IMAGE_TYPES, VOICE_TYPES, check_kind, known_type, size_of, sniffed
from threadkeep.errors import InvalidEvent

HEADS = {
    "audio/wav": b"RIFF\x24\x00\x00\x00WAVEfmt ",
    "audio/ogg": b"OggS\x00\x02",
    "audio/webm": b"\x1a\x45\xdf\xa3\x9f",
    "audio/mpeg": b"ID3\x04\x00",
    "audio/mp4": b"\x00\x00\x00\x20ftypM4A ",
    "audio/flac": b"fLaC\x00",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
    "image/gif": b"GIF89a",
    "image/bmp": b"BM\x36\x00\x00\x00\x00\x00\x00\x00",
}


@pytest.mark.parametrize("mime", [*VOICE_TYPES, *IMAGE_TYPES])
def test_every_type_that_is_taken_is_known_by_its_first_bytes(mime: str) -> None:
    assert sniffed(HEADS[mime]) == mime
    assert [other for other, head in HEADS.items() if sniffed(head) == mime] == [mime]
    check_kind(HEADS[mime], mime)


@pytest.mark.parametrize("head", [b"", b"%PDF-1.7", b"<svg", b"#!/bin/sh", b"PK\x03\x04", b"RIFF", b"#EXTM3U"])
def test_anything_else_is_none_of_ours(head: bytes) -> None:
    assert sniffed(head) is None
    with pytest.raises(InvalidEvent, match=r"^data: "):
        check_kind(head, "audio/wav")


def test_bytes_of_another_type_than_was_said_are_refused_with_the_right_one() -> None:
    with pytest.raises(InvalidEvent) as refused:
        check_kind(HEADS["image/jpeg"], "image/png")

    assert (refused.value.field, refused.value.fix) == ("mimeType", "call it image/jpeg")


@pytest.mark.parametrize(
    ("said", "meant"),
    [("Audio/WebM; codecs=opus", "audio/webm"), ("audio/x-wav", "audio/wav"), ("image/jpg", "image/jpeg")],
)
def test_other_spellings_are_understood(said: str, meant: str) -> None:
    assert known_type(said) == meant


@pytest.mark.parametrize("said", ["", "audio", "video/mp4", "image/svg+xml", "application/pdf", "text/plain"])
def test_other_types_are_refused(said: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^mimeType: "):
        known_type(said)


def test_a_recording_where_a_picture_belongs_is_refused() -> None:
    with pytest.raises(InvalidEvent, match=r"^mimeType: "):
        known_type("audio/wav", "image")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_a_picture_tells_its_size(form: str) -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.open(io.BytesIO(blank())).save(file, form)

    assert size_of(file, f"image/{form.lower()}") == (300, 200)


def test_a_lossless_webp_tells_its_size() -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.open(io.BytesIO(blank())).save(file, "WEBP", lossless=True)

    assert size_of(file, "image/webp") == (300, 200)


@pytest.mark.parametrize("mime", IMAGE_TYPES)
@pytest.mark.parametrize("rest", [b"", b"\x00" * 5, b"\xff" * 70])
def test_a_picture_that_ends_early_or_holds_nonsense_tells_no_size_or_one_to_check(mime: str, rest: bytes) -> None:
    size = size_of(io.BytesIO(HEADS[mime] + rest), mime)

    assert size is None or all(0 <= side <= 2**32 for side in size)


def test_a_jpeg_of_endless_segments_is_given_up() -> None:
    segment = b"\xff\xe1" + struct.pack(">H", 2)

    assert size_of(io.BytesIO(b"\xff\xd8" + segment * 2_000), "image/jpeg") is None
