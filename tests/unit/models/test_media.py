"""How short what was said is told, what hosted models are asked, and what is not understood."""

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agent.recording import RecordingModel
from tests.media.made import blank, drawn, silence
from tests.servers.locate import TESSERACT
from tests.servers.provide import need
from threadkeep.compose.service import media_for
from threadkeep.core.media import Media, MediaLimits
from threadkeep.errors import (
    CapabilityMissing,
    InvalidEvent,
    InvalidSetting,
    MissingExtra,
    ModelError,
    RateLimited,
    TooLarge,
)
from threadkeep.models.chat.langchain import native_messages
from threadkeep.models.media import text_in_image
from threadkeep.models.media import voice as whisper
from threadkeep.models.media.hosted import HostedMedia
from threadkeep.models.media.text_in_image import TesseractImages
from threadkeep.models.media.voice import Listener, WhisperVoice
from threadkeep.models.sentences import sentences
from threadkeep.models.summary import shortened
from threadkeep.ports.chat import Attached, ChatModel, ChatRequest, Said
from threadkeep.settings import Settings


@pytest.mark.parametrize(
    ("said", "language", "told"),
    [
        ("I am not allergic to peanuts.", "en", "not allergic peanuts."),
        ("Where can I park?", "en", "Where park?"),
        ("Czy jest parking przy hotelu?", "pl", "Czy parking hotelu?"),
        ("Nhà hàng đóng cửa vào thứ hai.", "vi", "Nhà hàng đóng cửa thứ hai."),
        ("我想訂一間看得到海的房間。", "zh-Hant", "我想訂一間看得到海房間。"),
        ("Yes.", "en", "Yes."),
    ],
)
def test_a_short_message_is_told_without_its_little_words(said: str, language: str, told: str) -> None:
    assert shortened(said, language) == told


@pytest.mark.parametrize(
    "said",
    [
        "Book a room. We arrive Friday. My wife eats no peanuts. Is there parking?",
        "Phòng đẹp. Giá rẻ. Gần biển. Có bãi xe. Ăn sáng ngon. Bể bơi lớn.",
        "Room twelve booked. Breakfast ordered.",
        "我想定反見我們先起舞到我太太不吃話",
        "word " * 400,
    ],
)
def test_what_is_told_is_never_all_that_was_said(said: str) -> None:
    told = shortened(said)

    assert said.strip() not in told
    assert 1 <= len(sentences(told)) <= 3
    assert len(told) <= 600


Voice = Callable[..., Media]


@pytest.fixture
async def voice() -> AsyncIterator[Voice]:
    """Listens to recordings of at most so many seconds, by itself or with a hosted model."""
    made: list[Media] = []

    def opened(most_seconds: float = 60, model: ChatModel | None = None) -> Media:
        one = WhisperVoice(["en"], most_seconds) if model is None else HostedMedia(model, most_seconds)
        made.append(Media({"voice": one}))
        return made[-1]

    yield opened
    for one in made:
        await one.close()


async def test_a_hosted_model_is_given_the_bytes_and_asked_for_words_and_a_summary() -> None:
    answer = {"summary": "A menu.", "words": "Soup 45", "language": "vi", "kind": "document"}
    model = RecordingModel(f"Here: {json.dumps(answer)}")
    media = Media({"image": HostedMedia(model, 60)})

    found = await media.understood(blank(), "image/png", language="vi", typed="What is this?")

    (request,) = model.requests
    assert [(one.mime, one.data) for one in request.attached] == [("image/png", blank())]
    assert found.event.summary == "What is this?\nA menu."
    assert found.words == "What is this?\nSoup 45"
    assert {**found.event.meta, "sha256": ""} == {
        "language": "vi", "mime": "image/png", "sha256": "", "imageKind": "document"
    }  # fmt: skip


async def test_a_hosted_model_that_hands_back_the_transcript_as_its_summary_is_shortened(voice: Voice) -> None:
    words = "I would like to book a room."
    model = RecordingModel(json.dumps({"summary": words, "words": words, "language": "not a tag!"}))

    found = await voice(model=model).understood(silence(), "audio/wav", language="en")

    assert found.event.summary == "like book room."
    assert found.words == words
    assert found.event.meta["durationMs"] == 1_000
    assert found.event.language == "en"


@pytest.mark.parametrize(
    ("line", "error"), [("I cannot hear.", ModelError), ('{"words": "", "summary": ""}', InvalidEvent)]
)
async def test_a_hosted_model_that_says_nothing_of_use_is_an_error(
    voice: Voice, line: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await voice(model=RecordingModel(line)).understood(silence(), "audio/wav")


def test_attached_media_go_to_the_model_with_the_last_message() -> None:
    request = ChatRequest("s", [Said("user", "before"), Said("user", "now")], attached=(Attached("audio/wav", b"x"),))

    assert [message.content for message in native_messages(request)] == [
        "s",
        "before",
        [{"type": "text", "text": "now"}, {"type": "audio", "base64": "eA==", "mime_type": "audio/wav"}],
    ]


async def test_what_opens_a_recording_sees_no_secret_and_is_ended_with_its_opener(
    voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://canary0001quill@db/x")
    monkeypatch.setenv("THREADKEEP_API_KEY_SECRET", "canary0001quill" * 3)
    media = voice(1)
    with pytest.raises(TooLarge):
        await media.understood(silence(3), "audio/wav")
    (child,) = [one for one in psutil.Process().children() if "threadkeep.models.media.voice" in one.cmdline()]

    assert "canary0001quill" not in str(child.environ())
    assert "PATH" in child.environ()
    await media.close()
    assert not child.is_running()


async def test_a_process_that_died_is_replaced(voice: Voice) -> None:
    media = voice(1)
    for _ in range(2):
        with pytest.raises(TooLarge):
            await media.understood(silence(3), "audio/wav")
        children = [one for one in psutil.Process().children() if "threadkeep.models.media.voice" in one.cmdline()]
        for child in children:
            child.kill()
            child.wait()


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"OggS" + bytes(range(256)) * 20, "audio/ogg"),
        (b"\x1a\x45\xdf\xa3" + bytes(range(256)) * 20, "audio/webm"),
        (b"\x00\x00\x00\x20ftypM4A " + bytes(range(256)) * 20, "audio/mp4"),
        (b"fLaC" + bytes(range(256)) * 20, "audio/flac"),
        (silence()[:40], "audio/wav"),
    ],
)
async def test_a_recording_that_is_broken_is_refused(voice: Voice, data: bytes, mime: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^audio\.data: cannot be read as a recording"):
        await voice().understood(data, mime, inside="audio")


async def test_a_recording_that_is_too_long_is_refused_before_it_is_listened_to(voice: Voice) -> None:
    with pytest.raises(TooLarge, match=r"^data: is too long a recording; send at most 1 seconds"):
        await voice(1).understood(silence(3), "audio/wav")


async def test_silence_is_refused(voice: Voice) -> None:
    with pytest.raises(InvalidEvent, match=r"^data: holds no speech"):
        await voice().understood(silence(), "audio/wav")


async def test_weights_that_differ_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "_WEIGHTS", "0" * 64)

    with pytest.raises(InvalidSetting, match=r"THREADKEEP_VOICE_MODEL: model\.bin is not the published file"):
        whisper.whisper_files()


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=r"threadkeep\[voice\]"):
        Listener(["en"], 60).heard(io.BytesIO(silence()), "audio/wav", None)


async def test_without_the_program_its_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_in_image.shutil, "which", lambda name: None)

    with pytest.raises(CapabilityMissing, match="apt-get install tesseract-ocr"):
        await Media({"image": TesseractImages(["en"], 60)}).understood(blank(), "image/png")


@pytest.mark.parametrize("broken", ["cut off", "blank"])
async def test_a_picture_that_is_broken_or_holds_no_text_is_refused(broken: str) -> None:
    need(TESSERACT)
    data = drawn("en")[:400] if broken == "cut off" else blank()

    with pytest.raises(InvalidEvent, match=r"^data: (cannot be read as a picture|holds no text)"):
        await Media({"image": TesseractImages(["en"], 60)}).understood(data, "image/png")


async def test_a_picture_that_takes_too_long_is_given_up() -> None:
    need(TESSERACT)

    with pytest.raises(InvalidEvent, match=r"^data: takes too long to read"):
        await Media({"image": TesseractImages(["en"], 0.001)}).understood(drawn("en"), "image/png")


async def test_a_language_without_its_pack_is_left_out_and_none_at_all_is_said() -> None:
    need(TESSERACT)
    found = await Media({"image": TesseractImages(["en", "zh-Hans"], 60)}).understood(
        drawn("en", form="JPEG"), "image/jpeg"
    )

    assert "museum is closed on Monday" in (found.event.summary or "")
    with pytest.raises(CapabilityMissing, match="no pack for any of zh-Hans"):
        await Media({"image": TesseractImages(["zh-Hans"], 60)}).understood(drawn("en"), "image/png")


async def test_an_open_file_is_read_and_left_open(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(blank())
    model = RecordingModel(json.dumps({"summary": "White.", "words": ""}))
    with path.open("rb") as file:
        found = await Media({"image": HostedMedia(model, 60)}).understood(file, "image/png")
        assert not file.closed

    assert found.words == "White."


async def test_the_limits_are_those_it_is_given() -> None:
    media = Media({}, MediaLimits(voice_bytes=10, image_bytes=10))

    with pytest.raises(TooLarge, match="THREADKEEP_MAX_AUDIO_BYTES"):
        await media.understood(silence(), "audio/wav")
    with pytest.raises(TooLarge, match="THREADKEEP_MAX_IMAGE_BYTES"):
        await media.understood(io.BytesIO(blank()), "image/png")


@pytest.mark.parametrize("name", ["THREADKEEP_VOICE_MODEL", "THREADKEEP_IMAGE_MODEL"])
def test_a_model_that_nobody_knows_is_refused_by_the_name_of_its_setting(name: str) -> None:
    settings: dict[str, Any] = {name: "nobody"}

    with pytest.raises(InvalidSetting, match=f"^{name}: names no model"):
        media_for(Settings(**settings))


async def test_the_program_that_opens_a_picture_sees_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tesseract"
    program.write_text(f"#!/bin/sh\nenv >> {tmp_path}/seen\ncat > /dev/null\necho eng\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("REDIS_URL", "redis://canary0001quill@cache")
    monkeypatch.setenv("OPENAI_API_KEY", "canary0001quill")
    await Media({"image": TesseractImages(["en"], 60)}).understood(blank(), "image/png")

    assert "PATH=" in (tmp_path / "seen").read_text()
    assert "canary0001quill" not in (tmp_path / "seen").read_text()


async def test_pictures_are_read_one_at_a_time_and_few_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program notes when it runs beside another."""
    program = tmp_path / "tesseract"
    lock = f"mkdir {tmp_path}/at_work || touch {tmp_path}/two_at_once"
    program.write_text(f"#!/bin/sh\n{lock}\ncat > /dev/null\nsleep 0.02\nrmdir {tmp_path}/at_work\necho eng\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    media = Media({"image": TesseractImages(["en"], 60)})
    work = [media.understood(blank(), "image/png") for _ in range(40)]
    found = await asyncio.gather(*work, return_exceptions=True)

    refused = [one for one in found if isinstance(one, RateLimited)]
    assert 0 < len(refused) < 8
    assert [one for one in found if isinstance(one, BaseException) and one not in refused] == []
    assert not (tmp_path / "two_at_once").exists()
