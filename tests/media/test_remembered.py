"""Four recordings and four pictures, told to an assistant over HTTP: words are kept, and nothing they came in.

On each of: one SQLite file, Redis with PostgreSQL, Redis with MariaDB.
"""

import base64
import hashlib
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.recording import RecordingModel
from tests.media.made import DRAWN, SPOKEN, drawn, pieces_of, spoken
from tests.privacy.in_servers import in_database, in_redis, own_database
from tests.privacy.test_canaries import everything_logged, exported
from tests.privacy.token_readers import every_encoding
from tests.servers.locate import ESPEAK, TESSERACT
from tests.servers.provide import need
from tests.servers.redis import RedisServer
from tests.servers.server import Server
from tests.service.conftest import client_of
from threadkeep.compose.assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.memory import Memory
from threadkeep.models.media.text_in_image import TesseractImages
from threadkeep.models.media.voice import WhisperVoice
from threadkeep.models.sentences import sentences
from threadkeep.settings import Settings
from threadkeep.testing.traces import Trace, Traces

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


@dataclass(frozen=True)
class Place:
    name: str
    url: str
    redis: str | None = None

    async def traces(self, scan: Traces) -> set[Trace]:
        """Of the servers; the files are in the folder that is looked through whole."""
        if self.redis is None:
            return set()
        return await in_database(scan, self.url) | in_redis(scan, self.redis)


@pytest.fixture
def places(
    tmp_path: Path, new_redis: Callable[..., RedisServer], postgres_server: Server, mariadb_server: Server
) -> Iterator[list[Place]]:
    with ExitStack() as databases:
        servers = [
            Place(one.name, databases.enter_context(own_database(one.url)), new_redis().url)
            for one in (postgres_server, mariadb_server)
        ]
        yield [Place("sqlite", f"sqlite:///{tmp_path}/memory.db"), *servers]


@pytest.fixture
def understood_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recording and picture is heard and read for the first store, really; for the others it is known by then."""
    heard: dict[str, Any] = {}
    hear, look = WhisperVoice.summarise, TesseractImages.summarise

    def once(summarise: Any) -> Any:
        async def summarised(self: Any, medium: Any) -> Any:
            digest = hashlib.sha256(medium.file.read()).hexdigest()
            medium.file.seek(0)
            if digest not in heard:
                heard[digest] = await summarise(self, medium)
            return heard[digest]

        return summarised

    monkeypatch.setattr(WhisperVoice, "summarise", once(hear))
    monkeypatch.setattr(TesseractImages, "summarise", once(look))


@dataclass
class Desk:
    place: Place
    client: httpx.AsyncClient
    model: RecordingModel
    memory: Memory

    async def kept(self, session: str) -> dict[str, Any]:
        messages = (await self.client.get(f"/conversations/{session}/history")).json()["messages"]
        assert [one["role"] for one in messages] == ["user", "assistant"]
        return messages[0]

    def told(self) -> str:
        """What the model was given to answer last."""
        return [one.messages[-1].content for one in self.model.requests if "You help." in one.system][-1]


@asynccontextmanager
async def desk(place: Place, folder: Path) -> AsyncIterator[Desk]:
    settings = Settings(
        DATABASE_URL=place.url,
        REDIS_URL=place.redis,
        THREADKEEP_EMBEDDER="none",
        THREADKEEP_LANGUAGES=",".join(LANGUAGES),
    )
    model, memories = RecordingModel("Noted."), list[Memory]()

    def opener(memory: Memory) -> Any:
        memories.append(memory)
        return open_assistant(memory, settings, folder, url=place.url, model=model)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        yield Desk(place, client, model, memories[0])


@asynccontextmanager
async def desks(places: Sequence[Place], tmp_path: Path) -> AsyncIterator[list[Desk]]:
    folder = library(tmp_path / "desk")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(desk(place, folder)) for place in places]


async def nothing_left(desks: Sequence[Desk], needles: Sequence[str | bytes], kept: str, tmp_path: Path) -> None:
    """In no file, log, export, table or key; and the same scan finds `kept`, which is in each of the stores."""
    scan, control = Traces(needles, every_encoding()), Traces([kept])
    for one in desks:
        await one.memory.flushed()
        (tmp_path / f"{one.place.name}.jsonl").write_text(await exported(one.memory))
        assert await one.place.traces(scan) == set()
        if one.place.redis is not None:
            assert await in_database(control, one.place.url)
            assert in_redis(control, one.place.redis)
    assert scan.in_folder(tmp_path) == set()
    names = {trace.file for trace in control.in_folder(tmp_path)}
    assert {"sqlite.jsonl", "postgres.jsonl", "mariadb.jsonl"} <= names
    assert names & {"memory.db", "memory.db-wal"}


@pytest.mark.usefixtures("everything_logged", "understood_once")
async def test_four_recordings_are_kept_as_summaries_alone(
    places: list[Place], tmp_path: Path, temporary: Path
) -> None:
    need(ESPEAK)
    transcripts, summaries, needles = list[str](), list[str](), list[str | bytes](MARKS.values())
    async with desks(places, tmp_path) as open_desks:
        for language in LANGUAGES:
            data = spoken(temporary, language, MARKS[language])
            needles += pieces_of(data)
            for one in open_desks:
                summary, transcript = await told_by_voice(one, language, data)
                transcripts.append(transcript)
                summaries.append(summary)
        assert "Friday" in transcripts[0]  # the others are not heard as well: docs/how-to/media.md
        left_out = [
            sentence
            for transcript, summary in zip(transcripts, summaries, strict=True)
            for sentence in (transcript, *sentences(transcript))
            if sentence not in summary
        ]
        assert set(transcripts) <= set(left_out)
        await nothing_left(open_desks, [*needles, *left_out], hashlib.sha256(data).hexdigest(), tmp_path)
    assert os.listdir(temporary) == []


async def told_by_voice(desk: Desk, language: str, data: bytes) -> tuple[str, str]:
    """What was kept of it, and what the model was told."""
    session, files = str(uuid.uuid4()), {"audio": ("question.wav", data, "audio/wav")}
    answer = await desk.client.post("/agent/chat", data={"sessionId": session, "voiceMode": "true"}, files=files)
    assert answer.status_code == 200, answer.text
    assert answer.json()["reply"].startswith("Noted.")
    assert "audio" not in answer.json()
    kept = await desk.kept(session)
    assert kept["modality"] == "voice"
    assert kept["meta"].pop("durationMs") == pytest.approx(len(data) / 44.1, rel=0.02)  # 22,050 of 2 bytes
    assert kept["meta"] == {"language": language, "mime": "audio/wav", "sha256": hashlib.sha256(data).hexdigest()}
    assert 1 <= len(sentences(kept["content"])) <= 3
    return kept["content"], desk.told()


@pytest.mark.usefixtures("everything_logged", "understood_once")
async def test_four_pictures_are_kept_as_the_text_found_in_them(
    places: list[Place], tmp_path: Path, temporary: Path
) -> None:
    need(TESSERACT)
    needles = list[str | bytes](MARKS.values())
    async with desks(places, tmp_path) as open_desks:
        for language, lines in DRAWN.items():
            data = drawn(language, MARKS[language])
            needles += pieces_of(data)
            for one in open_desks:
                shown = await told_by_picture(one, language, data)
                for word in ("學生免費",) if language == "zh-Hant" else lines.replace(".", "").split():
                    assert word in shown
        await nothing_left(open_desks, needles, hashlib.sha256(data).hexdigest(), tmp_path)
    assert os.listdir(temporary) == []


async def told_by_picture(desk: Desk, language: str, data: bytes) -> str:
    session = str(uuid.uuid4())
    image = {"data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    answer = await desk.client.post("/agent/chat", json={"sessionId": session, "image": image})
    assert answer.status_code == 200, answer.text
    kept = await desk.kept(session)
    facts = {"mime": "image/png", "sha256": hashlib.sha256(data).hexdigest(), "imageKind": "text"}
    assert (kept["modality"], kept["meta"]) == ("image", {"language": language} | facts)
    return kept["content"]
