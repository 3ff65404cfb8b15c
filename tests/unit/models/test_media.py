"""How short what was said is told, what hosted models are asked, and what is not understood."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.recording import RecordingModel
from tests.media.made import blank, drawn, silence
from tests.servers.locate import TESSERACT
from tests.servers.provide import need
from threadkeep.compose_media import media_for
from threadkeep.errors import CapabilityMissing, InvalidEvent, InvalidSetting, MissingExtra, ModelError, TooLarge
from threadkeep.media import Media, MediaLimits
from threadkeep.models.chat.langchain import native_messages
from threadkeep.models.media import text_in_image, whisper_weights
from threadkeep.models.media.briefly import told_briefly
from threadkeep.models.media.hosted import HostedMedia
from threadkeep.models.media.text_in_image import TesseractImages
from threadkeep.models.media.voice import WhisperVoice
from threadkeep.models.sentences import sentences
from threadkeep.ports.chat import Attached, ChatRequest, Said
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
    assert told_briefly(said, language) == told


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
    told = told_briefly(said)

    assert said.strip() not in told
    assert 1 <= len(sentences(told)) <= 3
    assert len(told) <= 600


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


async def test_a_hosted_model_that_hands_back_the_transcript_as_its_summary_is_shortened() -> None:
    words = "I would like to book a room."
    model = RecordingModel(json.dumps({"summary": words, "words": words, "language": "not a tag!"}))

    found = await Media({"voice": HostedMedia(model, 60)}).understood(silence(), "audio/wav", language="en")

    assert found.event.summary == "like book room."
    assert found.words == words
    assert found.event.meta["durationMs"] == 1_000
    assert found.event.language == "en"


@pytest.mark.parametrize(
    ("line", "error"), [("I cannot hear.", ModelError), ('{"words": "", "summary": ""}', InvalidEvent)]
)
async def test_a_hosted_model_that_says_nothing_of_use_is_an_error(line: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await Media({"voice": HostedMedia(RecordingModel(line), 60)}).understood(silence(), "audio/wav")


def test_attached_media_go_to_the_model_with_the_last_message() -> None:
    request = ChatRequest("s", [Said("user", "before"), Said("user", "now")], attached=(Attached("audio/wav", b"x"),))

    assert [message.content for message in native_messages(request)] == [
        "s",
        "before",
        [{"type": "text", "text": "now"}, {"type": "audio", "base64": "eA==", "mime_type": "audio/wav"}],
    ]


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
async def test_a_recording_that_is_broken_is_refused(data: bytes, mime: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^audio\.data: cannot be read as a recording"):
        await Media({"voice": WhisperVoice(["en"], 60)}).understood(data, mime, inside="audio")


async def test_a_recording_that_is_too_long_is_refused_before_it_is_listened_to() -> None:
    with pytest.raises(TooLarge, match=r"^data: is too long a recording; send at most 1 seconds"):
        await Media({"voice": WhisperVoice(["en"], 1)}).understood(silence(3), "audio/wav")


async def test_silence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadkeep.models.media.voice.loaded_model", object)  # it is never asked

    with pytest.raises(InvalidEvent, match=r"^data: holds no speech"):
        await Media({"voice": WhisperVoice(["en"], 60)}).understood(silence(), "audio/wav")


async def test_weights_that_differ_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper_weights, "_WEIGHTS", "0" * 64)

    with pytest.raises(InvalidSetting, match=r"THREADKEEP_VOICE_MODEL: model\.bin is not the published file"):
        whisper_weights.whisper_files()


async def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper_weights, "find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=r"threadkeep\[voice\]"):
        await Media({"voice": WhisperVoice(["en"], 60)}).understood(silence(), "audio/wav")


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
