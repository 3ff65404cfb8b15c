"""The search bot, from its author's point of view: what stands in history, memory, files and logs after a turn."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from threadkeep import (
    DebugTrace,
    Memory,
    ModelResponse,
    Scope,
    Settings,
    SyncMemory,
    SystemNote,
    Thought,
    ToolRequest,
    ToolResult,
    UserMessage,
    open_memory,
)
from threadkeep.compat import MemoryService, State, before_persist, persist_memory_from_session
from threadkeep.errors import InvalidInput
from threadkeep.settings import load_settings
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.traces import Traces

SCOPE = Scope(user="u1", conversation="s1")
FACTS = {"language": "vi", "mime": "audio/ogg", "durationMs": 900, "sha256": "a" * 64}
HIDDEN = "hidden7f3a9c"
TURN = [
    UserMessage("Mail me at an@example.com"),
    UserMessage(modality="voice", summary="asks for a cafe, 0912 345 678", meta={**FACTS, "eventId": HIDDEN}),
    UserMessage(modality="image", summary="a street sign", meta={"mime": "image/png"}, data=HIDDEN.encode()),
    ToolRequest("search", {"q": HIDDEN}),
    ToolResult("search", [HIDDEN]),
    SystemNote(HIDDEN),
    DebugTrace(f"planner: {HIDDEN}"),
    Thought(HIDDEN),
    ModelResponse("Two cafes, ask an@example.com", function_calls=({"args": HIDDEN},)),
]
KEPT = [
    ("user", "text", "Mail me at [REDACTED:EMAIL]", {}),
    ("user", "voice", "asks for a cafe, [REDACTED:PHONE]", FACTS),
    ("user", "image", "a street sign", {"mime": "image/png"}),
    ("assistant", "text", "Two cafes, ask [REDACTED:EMAIL]", {}),
]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def memory(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Memory]:
    settings = Settings(outward_log=str(tmp_path / "outward.jsonl"))
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings, clock=clock) as opened:
        yield opened


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, **fields}


TOOL_TRAFFIC = [event("ToolRequest", args={"q": HIDDEN}), event("ToolResult", result=[HIDDEN])]
ASKED = event("UserMessage", modality="text", text="a cafe near me?", ts=1)
ANSWERED = event("ModelResponse", channel="text", text="Two of them.", ts=2)


def session_of(memory: SyncMemory, events: list[dict[str, Any]], intent: str | None = None) -> SimpleNamespace:
    state = State()
    state.set("conversation.intentSummary", intent)
    return SimpleNamespace(id="s1", events=events, state=state, memory=MemoryService(memory, user="u1"))


async def test_history_and_export_hold_what_may_be_kept_and_nothing_else(memory: Memory, tmp_path: Path) -> None:
    await memory.append(SCOPE, TURN)
    history = (await memory.history(SCOPE)).messages
    (record,) = [one async for one in memory.export()]
    assert [(m.role, m.modality, m.content, dict(m.meta)) for m in history] == KEPT
    assert record.messages == history
    assert Traces([HIDDEN, "an@example.com", "0912 345 678"]).in_folder(tmp_path) == set()


async def test_the_log_that_leaves_the_house_carries_the_same_and_no_tool_payload(
    memory: Memory, tmp_path: Path
) -> None:
    await memory.append(SCOPE, TURN)
    lines = [json.loads(line) for line in (tmp_path / "outward.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == [*["UserMessage"] * 3, "ModelResponse", "append"]
    said = [(line["modality"], line.get("text") or line.get("summary")) for line in lines[:-1]]
    assert said == [(modality, content) for _, modality, content, _ in KEPT]
    assert HIDDEN not in (tmp_path / "outward.jsonl").read_text()


async def test_media_sent_as_summary_hash_and_facts_needs_no_bytes(memory: Memory) -> None:
    receipt = await memory.append(SCOPE, [UserMessage(modality="image", summary="a menu", meta={"sha256": "b" * 64})])
    (message,) = (await memory.history(SCOPE)).messages
    assert (receipt.refused, receipt.stripped) == ({}, {})
    assert (message.content, dict(message.meta)) == ("a menu", {"sha256": "b" * 64})


@pytest.mark.parametrize("modality", ["voice", "image"])
def test_before_persist_leaves_exactly_five_fields_of_a_media_message(modality: str) -> None:
    given = event(
        "UserMessage",
        modality=modality,
        summary="call 0912 345 678",
        text="the transcript",
        data=b"raw",
        id=HIDDEN,
        meta={**FACTS, "eventId": HIDDEN, "path": "/tmp/raw"},
        ts=7,
    )
    kept = {"kind": "UserMessage", "modality": modality, "summary": "call [REDACTED]", "meta": FACTS, "ts": 7}
    assert before_persist([given]) == [kept]


def test_before_persist_leaves_exactly_three_fields_of_a_text_and_of_an_answer() -> None:
    extra = {"id": HIDDEN, "invocationId": HIDDEN, "meta": {"requestId": HIDDEN}, "function_call": {"q": HIDDEN}}
    assert before_persist([ANSWERED | extra, *TOOL_TRAFFIC, event("PlannerTrace", text=HIDDEN), ASKED | extra]) == [
        {"kind": "ModelResponse", "text": "Two of them.", "ts": 2},
        {"kind": "UserMessage", "text": "a cafe near me?", "ts": 1},
    ]


def test_before_persist_drops_media_that_has_no_summary() -> None:
    assert before_persist([event("UserMessage", modality="voice", text="words"), ASKED])[0]["ts"] == 1


def test_writing_a_session_again_updates_its_record_and_makes_no_second_one(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        persist_memory_from_session(session_of(memory, [ASKED, *TOOL_TRAFFIC, ANSWERED], "find a cafe"))
        thanked = event("UserMessage", modality="text", text="thanks")
        persist_memory_from_session(session_of(memory, [ASKED, *TOOL_TRAFFIC, ANSWERED, thanked], "found a cafe"))
        (kept,) = memory.export()
        record = kept.as_memory_record()
    assert (record["sessionId"], record["model_responses"]) == ("s1", ["Two of them."])
    assert record["user_messages"] == ["a cafe near me?", "thanks"]
    assert record["meta"]["intent"] == "found a cafe"
    assert Traces([HIDDEN]).in_folder(tmp_path) == set()


async def test_an_archived_record_starts_with_the_first_word_and_ends_with_the_last_write(
    memory: Memory, clock: FakeClock
) -> None:
    started = clock()
    await memory.append(SCOPE, [UserMessage("hello")])
    ended = clock.advance(90)
    await memory.append(SCOPE, [ModelResponse("hi")])
    (record,) = [one.as_memory_record() async for one in memory.export()]
    assert (record["meta"]["startedAt"], record["meta"]["endedAt"]) == (started.isoformat(), ended.isoformat())


@pytest.mark.parametrize("name", ["tool.temp.searchResults", "retrieval.cache.vectorIds", "features.color"])
async def test_a_scratch_value_serves_later_turns_and_reaches_no_file(
    memory: Memory, clock: FakeClock, tmp_path: Path, name: str
) -> None:
    await memory.scratch.put(SCOPE, name, {"ids": [HIDDEN]}, 10 * 60)
    for turn in range(3):
        await memory.append(SCOPE, [UserMessage(f"question {turn}"), ModelResponse(f"answer {turn}")])
        clock.advance(180)
        assert await memory.scratch.get(SCOPE, name) == {"ids": [HIDDEN]}
    exported = [json.dumps(record.as_dict()) async for record in memory.export()]
    (tmp_path / "export.jsonl").write_text("\n".join(exported))
    assert Traces([HIDDEN]).in_folder(tmp_path) == set()
    clock.advance(60)
    assert await memory.scratch.get(SCOPE, name) is None


def test_state_is_set_as_the_sketch_sets_it_and_expires_by_itself(clock: FakeClock) -> None:
    state = State(clock)
    state.set("tool.temp.searchResults", ["a"], ttlMs=15 * 60_000, persist=False, ephemeral=True)
    state.set("retrieval.cache.vectorIds", [1], ttlMs=10 * 60_000, persist=False)
    clock.advance(10 * 60 - 1)
    assert (state.get("tool.temp.searchResults"), state.get("retrieval.cache.vectorIds")) == (["a"], [1])
    clock.advance(1)
    assert (state.get("tool.temp.searchResults"), state.get("retrieval.cache.vectorIds")) == (["a"], None)
    clock.advance(5 * 60)
    assert state.get("tool.temp.searchResults") is None


@pytest.mark.parametrize("name", ["tool.temp.x", "retrieval.cache.x", "features.x", "draft.x"])
def test_a_namespace_flagged_as_not_persisting_refuses_to_persist(clock: FakeClock, name: str) -> None:
    state = State(clock, never_persist=["tool.temp.*", "retrieval.cache.*", "draft.*"])
    for flags in ({"persist": True}, {"ephemeral": False}):
        with pytest.raises(InvalidInput, match="persist"):
            state.set(name, 1, **flags)
    state.set(name, 1)
    clock.advance(15 * 60)
    assert state.get(name) is None


@pytest.mark.parametrize("flag", ["", "*", ".*", "draft", "draft.", "draft*"])
def test_a_flag_that_names_no_namespace_is_refused(flag: str) -> None:
    with pytest.raises(InvalidInput, match="never_persist"):
        State(never_persist=[flag])


@pytest.mark.parametrize(("style", "kept"), [(None, "[REDACTED:EMAIL]"), ("plain", "[REDACTED]")])
async def test_what_marks_redacted_text_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, style: str | None, kept: str
) -> None:
    if style:
        monkeypatch.setenv("THREADKEEP_REDACTION_STYLE", style)
    async with open_memory("sqlite://", settings=load_settings()) as memory:
        await memory.append(SCOPE, [UserMessage("an@example.com")])
        assert (await memory.history(SCOPE)).messages[0].content == kept


@pytest.mark.parametrize(
    "url",
    [
        f"https://bob:{HIDDEN}@files.example.com/report",
        f"https://files.example.com/report?access_token={HIDDEN}",
        f"https://s3.example.com/a.pdf?X-Amz-Expires=60&X-Amz-Signature={HIDDEN}",
        f"https://blob.example.com/a?sv=2020&sig={HIDDEN}",
    ],
)
async def test_a_url_that_opens_a_door_is_not_kept(memory: Memory, tmp_path: Path, url: str) -> None:
    await memory.append(SCOPE, [UserMessage(f"see {url}"), ModelResponse(f"I saw {url}")])
    assert len((await memory.history(SCOPE)).messages) == 2
    assert Traces([HIDDEN]).in_folder(tmp_path) == set()
