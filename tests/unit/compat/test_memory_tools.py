"""The agent's memory tools, called the way the author's own code calls them."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from threadkeep import SyncMemory
from threadkeep.compat import (
    State,
    before_persist,
    is_persistable_event,
    persist_memory_from_session,
    put_tool_cache,
    redact,
)
from threadkeep.errors import InvalidInput
from threadkeep.testing.clock import FakeClock

USER_TEXT = {"kind": "UserMessage", "modality": "text", "text": "write to an@example.com", "ts": 1}
VOICE = {
    "kind": "UserMessage",
    "modality": "voice",
    "text": "the whole transcript",
    "summary": "asks for a room, call 0912 345 678",
    "meta": {"language": "vi", "mime": "audio/ogg", "durationMs": 900, "sha256": "a" * 64, "path": "/tmp/raw.ogg"},
    "ts": 2,
}
ANSWER = {"kind": "ModelResponse", "channel": "text", "text": "Sent to an@example.com", "args": {"q": "raw"}, "ts": 3}
TOOL = {"kind": "ToolResult", "result": "tool payload"}


class Upserts:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def upsert(self, record: dict[str, Any]) -> None:
        self.records.append(record)


def session_with(events: list[dict[str, Any]], memory: Any, **more: Any) -> SimpleNamespace:
    state = State()
    state.set("user.locale", "vi-VN")
    state.set("conversation.intentSummary", "book a room, mail an@example.com")
    return SimpleNamespace(id="s1", events=events, state=state, memory=memory, startedAt=100, endedAt=200, **more)


def test_redact_masks_an_address_and_a_phone_number_and_returns_a_string() -> None:
    assert redact("mail an@example.com or call +84 912 345 678") == "mail [REDACTED] or call [REDACTED]"


@pytest.mark.parametrize("nothing", ["", None])
def test_redact_hands_back_what_is_empty(nothing: Any) -> None:
    assert redact(nothing) == nothing


@pytest.mark.parametrize(
    ("event", "persistable"),
    [
        (USER_TEXT, True),
        (VOICE, True),
        ({**VOICE, "summary": ""}, False),
        ({"kind": "UserMessage", "modality": "image", "summary": "a cat"}, True),
        ({"kind": "UserMessage", "modality": "image"}, False),
        (ANSWER, True),
        ({"kind": "ModelResponse", "channel": "audio", "text": "x"}, False),
        ({"kind": "ModelResponse", "text": "x"}, False),
        (TOOL, False),
        ({"kind": "ToolRequest"}, False),
        ({"kind": "SystemNote", "text": "x"}, False),
        ({"kind": "Thought", "text": "x"}, False),
        ({"kind": "DebugTrace", "text": "x"}, False),
        ({}, False),
    ],
)
def test_only_user_text_media_with_a_summary_and_model_text_are_persistable(
    event: dict[str, Any], persistable: bool
) -> None:
    assert is_persistable_event(event) is persistable


def test_the_before_persist_pass_keeps_only_the_allowed_fields_redacted() -> None:
    assert before_persist([USER_TEXT, VOICE, TOOL, ANSWER]) == [
        {"kind": "UserMessage", "text": "write to [REDACTED]", "ts": 1},
        {
            "kind": "UserMessage",
            "modality": "voice",
            "summary": "asks for a room, call [REDACTED]",
            "meta": {"language": "vi", "mime": "audio/ogg", "durationMs": 900, "sha256": "a" * 64},
            "ts": 2,
        },
        {"kind": "ModelResponse", "text": "Sent to [REDACTED]", "ts": 3},
    ]


def test_an_answer_that_names_a_modality_keeps_its_text() -> None:
    spoken = {"kind": "ModelResponse", "channel": "text", "modality": "voice", "text": "Sent.", "ts": 4}
    assert before_persist([spoken]) == [{"kind": "ModelResponse", "text": "Sent.", "ts": 4}]


def test_facts_that_a_medium_lacks_are_none_and_lang_is_its_language() -> None:
    image = {"kind": "UserMessage", "modality": "image", "summary": "a cat", "meta": {"lang": "vi"}, "ts": 5}
    (kept,) = before_persist([image])
    assert kept["meta"] == {"language": "vi", "mime": None, "durationMs": None, "sha256": None}
    (kept,) = before_persist([{**image, "meta": None}])
    assert kept["meta"] == dict.fromkeys(("language", "mime", "durationMs", "sha256"))


def test_words_typed_beside_a_picture_are_a_user_message() -> None:
    memory = Upserts()
    image = {"kind": "UserMessage", "modality": "image", "text": "can I eat this?", "summary": "a menu"}
    persist_memory_from_session(session_with([image, VOICE], memory))
    assert memory.records[0]["user_messages"] == ["can I eat this?"]
    assert [one["modality"] for one in memory.records[0]["user_media_summaries"]] == ["image", "voice"]


@pytest.mark.parametrize(
    ("key", "given", "kept"),
    [
        ("mime", "audio/webm;codecs=opus", "audio/webm"),
        ("mime", "image/JPEG", "image/jpeg"),
        ("mime", "audio/ogg; codecs=opus; title=call me at 0912345678", "audio/ogg"),
        ("mime", "call me at 0912345678", None),
        ("sha256", "A" * 64, "a" * 64),
        ("sha256", f"sha256:{'a' * 64}", "a" * 64),
        ("durationMs", "1200", 1200),
        ("durationMs", "0912345678901234", None),
        ("language", "vi_VN", "vi-VN"),
        ("language", "Vietnamese, call me", None),
    ],
)
def test_media_meta_is_kept_as_recorders_write_it(key: str, given: str, kept: Any) -> None:
    (event,) = before_persist([{**VOICE, "meta": {key: given}}])
    assert event["meta"][key] == kept


def test_a_session_becomes_one_record_with_its_meta() -> None:
    memory = Upserts()
    persist_memory_from_session(session_with([USER_TEXT, TOOL, VOICE, ANSWER], memory))
    assert memory.records == [
        {
            "sessionId": "s1",
            "user_messages": ["write to [REDACTED]"],
            "user_media_summaries": [
                {
                    "summary": "asks for a room, call [REDACTED]",
                    "modality": "voice",
                    "meta": {"language": "vi", "mime": "audio/ogg", "durationMs": 900, "sha256": "a" * 64},
                }
            ],
            "model_responses": ["Sent to [REDACTED]"],
            "meta": {
                "startedAt": 100,
                "endedAt": 200,
                "locale": "vi-VN",
                "intent": "book a room, mail [REDACTED]",
            },
        }
    ]


def test_a_media_key_that_is_missing_is_none_in_the_record() -> None:
    memory = Upserts()
    persist_memory_from_session(session_with([{**VOICE, "meta": {"mime": "audio/ogg"}}], memory))
    meta = memory.records[0]["user_media_summaries"][0]["meta"]
    assert meta == {"language": None, "mime": "audio/ogg", "durationMs": None, "sha256": None}


def test_a_session_without_a_state_has_no_times_no_locale_and_no_intent() -> None:
    memory = Upserts()
    persist_memory_from_session(SimpleNamespace(id="s1", events=[USER_TEXT], memory=memory))
    assert memory.records[0]["meta"] == {"startedAt": None, "endedAt": None, "locale": None, "intent": None}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/memory.db"
    monkeypatch.setenv("DATABASE_URL", url)
    return url


def test_a_session_without_a_memory_is_stored_where_the_environment_says(place: str) -> None:
    for _ in range(2):
        persist_memory_from_session(SimpleNamespace(id="s1", events=[USER_TEXT, TOOL, ANSWER]))
    persist_memory_from_session(session_with([USER_TEXT], None, user_id="u1"))
    with SyncMemory(place) as memory:
        nobodys, ones = memory.export()
    assert (nobodys.user, ones.user, ones.intent) == ("default", "u1", "book a room, mail [REDACTED]")
    assert [one.content for one in nobodys.messages] == ["write to [REDACTED]", "Sent to [REDACTED]"]
    assert ones.reflections[0].kind == "session"


def test_inside_a_running_loop_it_is_stored_before_the_loop_is_over(place: str) -> None:
    async def turn() -> None:
        persist_memory_from_session(SimpleNamespace(id="s1", events=[USER_TEXT, ANSWER]))

    asyncio.run(turn())
    with SyncMemory(place) as memory:
        (kept,) = memory.export()
    assert len(kept.messages) == 2
    assert len(kept.reflections) == 1


def test_a_tool_result_is_cached_under_tool_temp_for_fifteen_minutes() -> None:
    clock = FakeClock()
    state = State(clock)
    put_tool_cache(state, "searchResults", ["a", "b"])
    clock.advance(seconds=899)
    assert state.get("tool.temp.searchResults") == ["a", "b"]
    clock.advance(seconds=2)
    assert state.get("tool.temp.searchResults") is None


def test_scratch_state_takes_its_ttl_and_refuses_to_persist() -> None:
    clock = FakeClock()
    state = State(clock)
    state.set("retrieval.cache.vectorIds", [1], ttl=600, persist=False)
    clock.advance(seconds=601)
    assert state.get("retrieval.cache.vectorIds", "gone") == "gone"
    with pytest.raises(InvalidInput, match="persist"):
        state.set("features.x", 1, persist=True)
    with pytest.raises(InvalidInput, match="ttl_seconds"):
        state.set("tool.temp.x", 1, ttl=1801)
