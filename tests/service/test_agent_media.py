"""Recordings and pictures in `/agent/chat`: in JSON, in a form, or as a client's own summary; and what is refused."""

import base64
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.test_agent_chat import SESSION, chat, is_envelope
from threadkeep.compose.assistant import open_assistant
from threadkeep.core.media import Media
from threadkeep.errors import InvalidEvent, ModelUnavailable
from threadkeep.http.app import create_app
from threadkeep.ports.models import MediaSummary, Medium
from threadkeep.settings import Settings
from threadkeep.testing.traces import Traces

HOTEL = Path(__file__).parents[2] / "examples" / "hotel_concierge"
MARK = "canaryraw0001quill"
SOUND = b"RIFF\x00\x00\x00\x00WAVE" + MARK.encode() * 10
LARGE_SOUND = SOUND + bytes(2_000_000)  # past what is held in memory
PIXELS = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 30, 20) + MARK.encode() * 10
HEARD = "Is there a room? Write to canaryheard0001quill@example.com. It is canaryheard0002quill."
SUMMARY = "Asks for a room; write to canarysummary0001quill@example.com."


class Listening:
    """Says what it is told to; remembers how the temporary folder looked while it did."""

    def __init__(self, folder: Path, failure: Exception | None = None) -> None:
        self._folder = folder
        self._failure = failure
        self.media: list[Medium] = []
        self.names: list[str] = []
        self.read = b""

    async def summarise(self, medium: Medium) -> MediaSummary:
        self.media.append(medium)
        self.read = medium.file.read()
        self.names = os.listdir(self._folder)
        if self._failure is not None:
            raise self._failure
        return MediaSummary(SUMMARY, HEARD, "en", 1_500 if medium.modality == "voice" else None)

    async def close(self) -> None: ...


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def listening(temporary: Path) -> Listening:
    return Listening(temporary)


@pytest.fixture
async def client(database: Path, scripts: Scripts, listening: Listening) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings(DATABASE_URL=f"sqlite:///{database}"), responder_opener=scripts.opener)
    app.state.media = Media({"voice": listening, "image": listening})
    async with client_of(app) as client:
        yield client


async def kept(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    answer = await client.get(f"/conversations/{SESSION}/history")
    return [one for one in answer.json().get("messages", []) if one["role"] == "user"]


async def send(client: httpx.AsyncClient, data: bytes, mime: str = "audio/wav", field: str = "audio") -> httpx.Response:
    return await client.post("/agent/chat", data={"sessionId": SESSION}, files={field: ("x", data, mime)})


def encoded(data: bytes, mime: str) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode(), "mimeType": mime}


@pytest.mark.parametrize("way", ["json", "form", "large form"])
async def test_a_recording_is_answered_from_its_words_and_kept_as_its_summary(
    client: httpx.AsyncClient, scripts: Scripts, listening: Listening, database: Path, way: str
) -> None:
    data = LARGE_SOUND if way == "large form" else SOUND
    if way == "json":
        answer = await chat(client, None, audio=encoded(data, "audio/wav; codecs=1"))
    else:
        answer = await send(client, data)

    assert answer.status_code == 200, answer.text
    assert answer.json()["toolTrace"] == [{"name": "rooms", "status": "OK", "durationMs": 3}]  # the model had the words
    assert scripts.latest.asked[0].text == HEARD
    assert HEARD not in repr(scripts.latest.asked[0])
    (message,) = await kept(client)
    facts = {"language": "en", "mime": "audio/wav", "durationMs": 1500, "sha256": hashlib.sha256(data).hexdigest()}
    assert (message["modality"], message["meta"]) == ("voice", facts)
    assert message["content"] == "Asks for a room; write to [REDACTED:EMAIL]."
    assert listening.read == data
    assert listening.names == []  # a file without a name: no end of the process would leave it behind
    assert listening.media[0].file.closed or way == "json"
    needles = [MARK, "canaryheard0001quill", "canaryheard0002quill", "canarysummary0001quill"]
    assert Traces(needles).in_folder(database.parent) == set()


async def test_what_is_typed_beside_a_picture_is_kept_before_its_summary(
    client: httpx.AsyncClient, scripts: Scripts
) -> None:
    answer = await chat(client, "What is this?", image=encoded(PIXELS, "image/png"))

    assert answer.status_code == 200, answer.text
    assert scripts.latest.asked[0].text == f"What is this?\n{HEARD}"
    (message,) = await kept(client)
    assert message["modality"] == "image"
    assert message["content"] == "What is this?\nAsks for a room; write to [REDACTED:EMAIL]."
    assert message["meta"] == {"language": "en", "mime": "image/png", "sha256": hashlib.sha256(PIXELS).hexdigest()}


@pytest.mark.parametrize(("field", "mime"), [("audio", "audio/ogg"), ("image", "image/jpeg")])
async def test_a_client_may_send_its_own_summary_and_no_bytes(
    client: httpx.AsyncClient, scripts: Scripts, listening: Listening, field: str, mime: str
) -> None:
    facts = {"mimeType": mime, "sha256": "a" * 64, "language": "pl"}
    own = facts | ({"durationMs": 900} if field == "audio" else {"imageKind": "photo"})

    answer = await chat(client, None, **{field: own | {"summary": "Pyta o pokój dla ann@example.com."}})

    assert answer.status_code == 200, answer.text
    assert listening.media == []
    (message,) = await kept(client)
    assert message["content"] == "Pyta o pokój dla [REDACTED:EMAIL]."
    expected = {"language": "pl", "mime": mime, "sha256": "a" * 64}
    expected |= {"durationMs": 900} if field == "audio" else {"imageKind": "photo"}
    assert message["meta"] == expected


HUGE = PIXELS[:16] + struct.pack(">II", 90_000, 90_000)
REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "lies": ({"audio": encoded(PIXELS, "audio/wav")}, 400, "invalid_event", "audio.mimeType"),
    "lies the other way": ({"image": encoded(SOUND, "image/png")}, 400, "invalid_event", "image.mimeType"),
    "is nothing known": ({"audio": encoded(b"%PDF-1.7", "audio/wav")}, 400, "invalid_event", "audio.data"),
    "is empty": ({"audio": encoded(b"", "audio/wav")}, 400, "invalid_event", "audio.data"),
    "is no sound": ({"audio": encoded(PIXELS, "image/png")}, 400, "invalid_input", "audio.mimeType"),
    "is too large": ({"image": encoded(bytes(4_194_400), "image/png")}, 413, "too_large", "image.data"),
    "is a huge picture": ({"image": encoded(HUGE, "image/png")}, 413, "too_large", "image.data"),
    "has neither bytes nor words": ({"audio": {"mimeType": "audio/wav"}}, 400, "invalid_input", "audio.data"),
    "has both": ({"audio": encoded(SOUND, "audio/wav") | {"summary": "x"}}, 400, "invalid_input", "audio.summary"),
    "has words beside it": ({"message": "hi", "audio": encoded(SOUND, "audio/wav")}, 400, "invalid_input", "audio"),
    "has a hash that is none": (
        {"audio": {"mimeType": "audio/wav", "summary": "x", "sha256": "zz"}}, 400, "invalid_input", "audio.sha256"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
async def test_a_medium_that_cannot_be_taken_is_refused_and_nothing_is_kept(
    client: httpx.AsyncClient, scripts: Scripts, case: str
) -> None:
    body, status, code, field = REFUSED[case]

    answer = await client.post("/agent/chat", json={"sessionId": SESSION} | body)

    assert is_envelope(answer, status, code, field)
    assert answer.json()["details"]["fix"]
    assert await kept(client) == []
    assert scripts.latest.asked == []


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (InvalidEvent("data", "holds no speech", "speak"), 400, "invalid_event"),
        (ModelUnavailable("away"), 502, "model_unavailable"),
        (RuntimeError(HEARD), 500, "internal_error"),
    ],
)
async def test_whatever_fails_while_it_is_looked_at_leaves_nothing_behind(
    database: Path, scripts: Scripts, temporary: Path, failure: Exception, status: int, code: str
) -> None:
    app = create_app(Settings(DATABASE_URL=f"sqlite:///{database}"), responder_opener=scripts.opener)
    app.state.media = Media({"voice": Listening(temporary, failure)})
    async with client_of(app) as client:
        answer = await send(client, LARGE_SOUND)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert await kept(client) == []
    assert os.listdir(temporary) == []
    assert Traces([MARK, "canaryheard0001quill"]).in_folder(database.parent) == set()


async def test_a_kind_that_nobody_looks_at_is_said_to_be_missing(database: Path, scripts: Scripts) -> None:
    settings = Settings(
        DATABASE_URL=f"sqlite:///{database}", THREADKEEP_VOICE_MODEL="none", THREADKEEP_IMAGE_MODEL="none"
    )
    async with client_of(create_app(settings, responder_opener=scripts.opener)) as client:
        assert is_envelope(await chat(client, None, audio=encoded(SOUND, "audio/wav")), 501, "capability_missing")
        assert is_envelope(await chat(client, None, image=encoded(PIXELS, "image/png")), 501, "capability_missing")


FIELD = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\nx\r\n'
FILE = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="x"\r\n\r\n'
FORMS: dict[str, tuple[bytes, int, str]] = {
    "broken": (b"nonsense", 400, "invalid_form"),
    "cut off": (FILE % b"audio" + bytes(2_000_000), 400, "invalid_form"),
    "too large": (b"--b\r\n" + bytes(8_000_000), 413, "too_large"),
    "without a name": (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", 400, "invalid_form"),
    "of too many fields": (b"".join(FIELD % str(n).encode() for n in range(10)) + b"--b--", 400, "invalid_form"),
    "twice": (FIELD % b"message" * 2 + b"--b--", 400, "repeated_field"),
    "another file": (FILE % b"video" + b"\r\n--b--", 400, "invalid_form"),
}


@pytest.mark.parametrize("case", FORMS)
async def test_a_form_that_cannot_be_read_is_refused(client: httpx.AsyncClient, temporary: Path, case: str) -> None:
    body, status, code = FORMS[case]
    headers = {"Content-Type": "multipart/form-data; boundary=b"}

    answer = await client.post("/agent/chat", content=body, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert os.listdir(temporary) == []


async def test_a_form_without_a_file_is_a_message_like_any_other(client: httpx.AsyncClient) -> None:
    nothing = {"x": (None, "y")}
    said = await client.post("/agent/chat", files={"sessionId": (None, SESSION), "message": (None, "hello")})
    odd = await client.post("/agent/chat", files={"sessionId": (None, SESSION), "message": (None, "hello")} | nothing)

    assert said.json()["reply"] == "Your first question."
    assert is_envelope(odd, 400, "invalid_input", "body")


async def test_the_same_form_sent_again_with_its_key_is_answered_once(client: httpx.AsyncClient) -> None:
    files, headers = {"audio": ("x", SOUND, "audio/wav")}, {"Idempotency-Key": "k1"}
    first = await client.post("/agent/chat", data={"sessionId": SESSION}, files=files, headers=headers)
    again = await client.post("/agent/chat", data={"sessionId": SESSION}, files=files, headers=headers)

    assert first.json()["reply"] == again.json()["reply"]
    assert again.headers["idempotent-replayed"] == "true"
    assert len(await kept(client)) == 1
    assert json.dumps(first.json()).count(MARK) == 0


@pytest.mark.parametrize("sent", ["its summary", "the recording"])
async def test_a_recording_in_a_language_of_its_own_settles_the_conversations_as_written_words_do(
    database: Path, temporary: Path, sent: str
) -> None:
    class German(Listening):
        async def summarise(self, medium: Medium) -> MediaSummary:
            return MediaSummary("Der Gast fragt nach einem Zimmer.", "Haben Sie ein Zimmer frei?", "de", 1_500)

    settings = Settings(DATABASE_URL=f"sqlite:///{database}").model_copy(update={"embedder": "none"})
    app = create_app(settings, responder_opener=lambda memory: open_assistant(memory, settings, HOTEL))
    app.state.media = Media({"voice": German(temporary)})
    own = {"mimeType": "audio/wav", "summary": "Der Gast fragt nach einem Zimmer.", "language": "de"}
    async with client_of(app) as client:
        first = await chat(client, None, audio=own if sent == "its summary" else encoded(SOUND, "audio/wav"))
        assert first.json()["language"] == "de"  # a model answers in it; fixed phrases fall back to English
        then = await chat(client, "Good evening, what time is breakfast served tomorrow morning?")
        assert then.json()["language"] == "de"
        kept = (await client.get(f"/conversations/{SESSION}/history")).json()
    assert kept["language"] == "de"
    assert kept["messages"][0]["meta"]["language"] == "de"  # a fact of the recording
