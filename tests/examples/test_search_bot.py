"""The search bot of the example: words, a recording and a picture, with tools, on a scripted model."""

import hashlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from pydantic import PrivateAttr

from tests.adapters.adk.scripted import ScriptedModel, call, text
from tests.adapters.adk.test_adk_sessions import said
from tests.adapters.database import every_value, rows
from tests.media.made import blank, silence
from tests.servers.locate import TESSERACT
from tests.servers.provide import need
from threadkeep import Scope, open_memory
from threadkeep.core.media import Media
from threadkeep.errors import InvalidEvent
from threadkeep.ports.models import MediaSummary, Medium
from threadkeep.testing.traces import Traces

ROOT = Path(__file__).parents[2]
PIXELS, SOUND = b"canarypixels" * 30, b"canarysound" * 30
PICTURE = {
    "summary": "A photo of a menu with peanuts.",
    "modality": "image",
    "meta": {"mime": "image/png", "sha256": "a" * 64, "path": "/canary/path"},
}
RECORDING = {
    "summary": "Asks when the museum is open.",
    "modality": "voice",
    "meta": {"mime": "audio/wav", "durationMs": 1200, "language": "pl"},
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's own package is called `app`, as in the repository it is written for."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "search_bot"))
    for name in [name for name in sys.modules if name == "app" or name.startswith("app.")]:
        monkeypatch.delitem(sys.modules, name)
    from app import agent  # type: ignore[import-not-found]

    yield agent
    for name in [name for name in sys.modules if name == "app" or name.startswith("app.")]:
        del sys.modules[name]


async def test_a_turn_in_words_a_picture_and_a_recording_leave_words_and_summaries(
    example: Any, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/bot.db"
    script = [
        [call("search", query="night market canaryargument")],
        [text("It opens at six.")],
        [call("search", query="peanuts canaryargument")],
        [text("The soup kitchen is safe.")],
        [text("Closed on Mondays.")],
    ]
    async with example.SearchBot(url, ScriptedModel(script)) as bot:
        answer, _ = await bot.ask("u", "c", "I am ann.example@example.com, when is the night market open?")
        assert answer == "It opens at six."
        photo = types.Part.from_bytes(data=PIXELS, mime_type="image/png")
        await bot.ask("u", "c", "Can I eat this?", media=photo, media_summary=PICTURE)
        sound = types.Part.from_bytes(data=SOUND, mime_type="audio/wav")
        _, record = await bot.ask("u", "c", media=sound, media_summary=RECORDING)
    assert record["model_responses"] == ["It opens at six.", "The soup kitchen is safe.", "Closed on Mondays."]
    async with open_memory(url) as memory:
        kept = (await memory.history(Scope("search-bot", "u", "c"), limit=20)).messages
    assert [one.content for one in kept if one.role == "user"] == [
        "I am [REDACTED:EMAIL], when is the night market open?",
        "Can I eat this?\nA photo of a menu with peanuts.",
        "Asks when the museum is open.",
    ]
    assert [one.modality for one in kept if one.role == "user"] == ["text", "image", "voice"]
    assert dict(kept[2].meta) == {"mime": "image/png", "sha256": "a" * 64}
    found = b"\n".join(await every_value(url))
    assert not [word for word in (b"canary", b"ann.example", b"18:00", b"Y2FuYXJ5") if word in found]


async def test_media_may_come_as_a_summary_without_any_bytes(example: Any, tmp_path: Path) -> None:
    async with example.SearchBot(f"sqlite:///{tmp_path}/bot.db", ScriptedModel([[text("On Tuesday.")]])) as bot:
        answer, _ = await bot.ask("u", "c", media_summary=RECORDING)
    assert answer == "On Tuesday."


async def test_the_answer_is_what_the_model_says_and_not_what_it_thinks(example: Any, tmp_path: Path) -> None:
    thought = types.Part(text="canarythought", thought=True)
    script = [[thought, text("It opens at six, "), text("on Bến Thành square.")], [thought]]
    async with example.SearchBot(f"sqlite:///{tmp_path}/bot.db", ScriptedModel(script)) as bot:
        answer, _ = await bot.ask("u", "c", "When is the night market open?")
        assert answer == "It opens at six, on Bến Thành square."
        assert (await bot.ask("u", "c", "And then?"))[0] == ""


class Instructed(ScriptedModel):
    """Remembers its instruction too."""

    _instructed: list[str] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._instructed.append(str(llm_request.config.system_instruction))
        async for response in super().generate_content_async(llm_request, stream):
            yield response

    @property
    def instructed(self) -> list[str]:
        return self._instructed


async def test_a_photo_without_text_gets_a_reason_and_the_turn_goes_on_without_it(
    example: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    need(TESSERACT)
    url, photo = f"sqlite:///{tmp_path}/bot.db", blank("canarypixels0001quill")
    model = Instructed([[text("Most soups are safe.")], [text("At six.")]])
    reason = "The picture was left out: it holds no text that can be read. Say in words what it shows."
    async with example.SearchBot(url, model) as bot:
        answer, record = await bot.ask_with("u", "c", photo, "image/png", "Can I eat this?")
        assert answer == f"{reason}\nMost soups are safe."
        assert (record["user_messages"], record["user_media_summaries"]) == (["Can I eat this?"], [])
        assert reason in model.instructed[0]
        assert not [part for content in model.asked[0] for part in content.parts or [] if part.inline_data]
        answer, record = await bot.ask_with("u", "c", photo, "image/png")
        assert (answer, len(record["model_responses"])) == (reason, 1)  # there is nothing to ask a model
        assert (await bot.ask("u", "c", "When does the market open?"))[0] == "At six."
    assert reason not in model.instructed[1]
    (message, _) = [one for one in caplog.messages if one.startswith("a picture was left out of a turn")]
    assert "THREADKEEP_IMAGE_MODEL" in message
    assert Traces(["canarypixels0001quill", "was left out"]).in_folder(tmp_path) == set()


async def test_where_nobody_looks_at_pictures_the_turn_goes_on_without_them(example: Any, tmp_path: Path) -> None:
    async with example.SearchBot(f"sqlite:///{tmp_path}/bot.db", ScriptedModel([[text("Yes.")]]), Media({})) as bot:
        answer, _ = await bot.ask_with("u", "c", blank(), "image/png", "Is it open?")
    assert answer.startswith("The picture was left out: pictures are not understood here")
    assert answer.endswith("\nYes.")


async def test_a_turn_is_persisted_as_the_document_calls_it(example: Any, tmp_path: Path) -> None:
    from app.tools import memory_tools  # type: ignore[import-not-found]

    url = f"sqlite:///{tmp_path}/bot.db"
    async with example.SearchBot(url, ScriptedModel([])):
        other = InMemorySessionService()
        session = await other.create_session(app_name="search_bot", user_id="u", session_id="c")
        await other.append_event(session, said("user", "where is the lighthouse museum?"))
        memory_tools.persist_memory_from_session(session)
    async with open_memory(url) as memory:
        (kept,) = [record async for record in memory.export(Scope("search-bot", "u"))]
    assert ([one.content for one in kept.messages], len(kept.reflections)) == (["where is the lighthouse museum?"], 1)


def test_the_memory_tools_are_where_the_bot_looks_for_them(example: Any) -> None:
    from app.tools import memory_tools  # type: ignore[import-not-found]

    assert memory_tools.redact("ann@example.com") == "[REDACTED]"
    assert memory_tools.is_persistable_event({"kind": "UserMessage", "modality": "text"})
    assert example.persist_memory_from_session is memory_tools.persist_memory_from_session


async def test_the_session_log_and_memory_are_kept_for_as_many_days_as_the_bot_says(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/bot.db"
    async with example.SearchBot(url, ScriptedModel([[text("answercanary")]])) as bot:
        await bot.ask("u", "c", "questioncanary")
    async with open_memory(url) as memory:
        name = (await memory.conversations(Scope("search-bot", "u")))[0].conversation
        await memory.set_intent(Scope("search-bot", "u", name), "intentcanary")
    from app import memory_config  # type: ignore[import-not-found]

    await example.forget_old(url)
    assert await found(url) == {"questioncanary", "answercanary", "intentcanary"}
    await grow_old(url, days=100)
    await example.forget_old(url)
    assert await found(url) == {"intentcanary"}
    monkeypatch.setattr(memory_config, "MEMORY_RETENTION_DAYS", 99)
    await example.forget_old(url)
    assert await found(url) == set()


async def found(url: str) -> set[str]:
    values = await every_value(url)
    words = ("questioncanary", "answercanary", "intentcanary")
    return {word for word in words if any(word.encode() in value for value in values)}


async def grow_old(url: str, days: int) -> None:
    past = days * 86_400_000_000
    await rows(url, f"UPDATE tk_messages SET ts = ts - {past}, stored_at = stored_at - {past}")
    for column in ("started_at", "last_activity_at"):
        await rows(url, f"UPDATE tk_conversations SET {column} = {column} - {past}")


class Listens:
    """In place of a model that hears and sees."""

    async def summarise(self, medium: Medium) -> MediaSummary:
        if medium.modality == "voice":
            words = "Good day. When is the museum open? It is for canarytranscript0001quill."
            return MediaSummary("Asks when the museum is open.", words, "en", 1_200)
        return MediaSummary("A menu with peanuts.", "canaryfound0001quill", "en", image_kind="photo")

    async def close(self) -> None: ...


async def test_a_spoken_question_and_a_picture_are_understood_answered_and_kept_as_summaries(
    example: Any, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/bot.db"
    sound, picture = silence() + b"canarysound0001quill", blank("canarypixels0001quill")
    model = ScriptedModel([[call("search", query="museum")], [text("Closed on Mondays.")], [text("Not that one.")]])
    async with example.SearchBot(url, model, Media({"voice": Listens(), "image": Listens()})) as bot:
        answer, _ = await bot.ask_with("u", "c", sound, "audio/wav")
        assert answer == "Closed on Mondays."
        assert "canarytranscript0001quill" in str(model.asked[0])  # the model had the words
        answer, record = await bot.ask_with("u", "c", picture, "image/png", "Can I eat this?")
        assert answer == "Not that one."
        with pytest.raises(InvalidEvent, match=r"^mimeType: is audio/wav, and the bytes are image/png"):
            await bot.ask_with("u", "c", picture, "audio/wav")
    summaries = [(one["summary"], one["modality"]) for one in record["user_media_summaries"]]
    assert summaries == [("Asks when the museum is open.", "voice"), ("A menu with peanuts.", "image")]
    assert record["user_messages"] == ["Can I eat this?"]
    async with open_memory(url) as memory:
        spoken, _, shown, _ = (await memory.history(Scope("search-bot", "u", "c"), limit=20)).messages
    assert dict(spoken.meta) == {
        "language": "en", "mime": "audio/wav", "durationMs": 1200, "sha256": hashlib.sha256(sound).hexdigest()
    }  # fmt: skip
    assert (shown.meta["imageKind"], shown.meta["mime"]) == ("photo", "image/png")
    needles = ["canarytranscript0001quill", "canaryfound0001quill", "canarysound0001quill", "canarypixels0001quill"]
    assert Traces(needles).in_folder(tmp_path) == set()
