"""Four recordings and four pictures, told to an assistant over HTTP: words are kept, and nothing they came in."""

import base64
import hashlib
import os
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.recording import RecordingModel
from tests.media.made import DRAWN, SPOKEN, drawn, spoken
from tests.privacy.test_canaries import everything_logged
from tests.privacy.token_readers import every_encoding
from tests.servers.locate import ESPEAK, TESSERACT
from tests.servers.provide import need
from tests.service.conftest import client_of
from threadkeep.compose_assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.memory import Memory
from threadkeep.models.sentences import sentences
from threadkeep.models.token_bytes import unpack_ids
from threadkeep.settings import Settings
from threadkeep.testing.traces import Traces

__all__ = ["everything_logged"]
LANGUAGES = tuple(SPOKEN)
MARKS = {language: f"canaryraw{number:04d}quill" for number, language in enumerate(LANGUAGES)}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def library(folder: Path) -> Path:
    folder.mkdir()
    (folder / "assistant.toml").write_text(
        f'name = "desk"\nlanguages = {list(LANGUAGES)}\ndefault_language = "en"\n'
        "[reflection]\nafter_each_turn = true\nrolling_summary = true\n"
    )
    (folder / "persona.md").write_text("You help.")
    (folder / "prompt.txt").write_text("Answer.")
    return folder


@asynccontextmanager
async def desk(tmp_path: Path, model: RecordingModel) -> AsyncIterator[httpx.AsyncClient]:
    url = f"sqlite:///{tmp_path}/memory.db"
    settings = Settings(DATABASE_URL=url, THREADKEEP_EMBEDDER="none", THREADKEEP_LANGUAGES=",".join(LANGUAGES))
    folder = library(tmp_path / "desk")

    def opener(memory: Memory) -> Any:
        return open_assistant(memory, settings, folder, url=url, model=model)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        yield client


async def kept_of(client: httpx.AsyncClient, session: str) -> dict[str, Any]:
    messages = (await client.get(f"/conversations/{session}/history")).json()["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant"]
    return messages[0]


@pytest.mark.usefixtures("everything_logged")
async def test_four_recordings_are_kept_as_summaries_alone(tmp_path: Path, temporary: Path) -> None:
    need(ESPEAK)
    model, transcripts, summaries = RecordingModel("Noted."), [], []
    async with desk(tmp_path, model) as client:
        for language in LANGUAGES:
            session, data = str(uuid.uuid4()), spoken(temporary, language, MARKS[language])
            files = {"audio": ("question.wav", data, "audio/wav")}
            answer = await client.post("/agent/chat", data={"sessionId": session, "voiceMode": "true"}, files=files)
            assert answer.status_code == 200, answer.text
            assert answer.json()["reply"].startswith("Noted.")
            assert "audio" not in answer.json()
            kept = await kept_of(client, session)
            assert kept["modality"] == "voice"
            assert kept["meta"].pop("durationMs") == pytest.approx(len(data) / 44.1, rel=0.02)  # 22,050 of 2 bytes
            expected = {"language": language, "mime": "audio/wav", "sha256": hashlib.sha256(data).hexdigest()}
            assert kept["meta"] == expected
            assert 1 <= len(sentences(kept["content"])) <= 3
            transcripts.append([one.messages[-1].content for one in model.requests if "You help." in one.system][-1])
            summaries.append(kept["content"])
    assert "Friday" in transcripts[0]  # the others are not heard as well: docs/how-to/media.md
    left_out = [
        sentence
        for transcript, summary in zip(transcripts, summaries, strict=True)
        for sentence in (transcript, *sentences(transcript))
        if sentence not in summary
    ]
    assert set(transcripts) <= set(left_out)
    scan = Traces([*MARKS.values(), *left_out], every_encoding(), unpack_ids)
    assert scan.in_folder(tmp_path) == set()
    assert os.listdir(temporary) == []


@pytest.mark.usefixtures("everything_logged")
async def test_four_pictures_are_kept_as_the_text_found_in_them(tmp_path: Path, temporary: Path) -> None:
    need(TESSERACT)
    model, shown = RecordingModel("Noted."), {}
    async with desk(tmp_path, model) as client:
        for language in LANGUAGES:
            session, data = str(uuid.uuid4()), drawn(language, MARKS[language])
            image = {"data": base64.b64encode(data).decode(), "mimeType": "image/png"}
            answer = await client.post("/agent/chat", json={"sessionId": session, "image": image})
            assert answer.status_code == 200, answer.text
            kept = await kept_of(client, session)
            facts = {"mime": "image/png", "sha256": hashlib.sha256(data).hexdigest(), "imageKind": "text"}
            assert (kept["modality"], kept["meta"]) == ("image", {"language": language} | facts)
            shown[language] = kept["content"]
    for language, lines in DRAWN.items():
        for word in ("學生免費",) if language == "zh-Hant" else lines.replace(".", "").split():
            assert word in shown[language]
    assert Traces(MARKS.values(), every_encoding(), unpack_ids).in_folder(tmp_path) == set()
    assert os.listdir(temporary) == []
