"""ADK's memory service and plugin: what is found again, by whom, and what never is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.adapters.adk.scripted import APP, ScriptedModel, call, runner_of, say, text, texts
from tests.adapters.adk.test_adk_sessions import said
from tests.adapters.adk.test_adk_turns import answered, asked
from tests.adapters.database import every_value
from threadkeep import Settings
from threadkeep.adapters.adk import (
    ThreadkeepMemoryService,
    ThreadkeepPlugin,
    ThreadkeepSessionService,
    persist_memory_from_session,
)
from threadkeep.compat import before_persist, is_persistable_event
from threadkeep.errors import InvalidInput


@pytest.fixture
async def memories(sqlite_place: dict[str, Any]) -> AsyncIterator[ThreadkeepMemoryService]:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as service:
        yield service


async def found(memories: ThreadkeepMemoryService, query: str, app: str = "a", user: str = "u") -> list[str]:
    response = await memories.search_memory(app_name=app, user_id=user, query=query)
    return [part.text or "" for entry in response.memories for part in entry.content.parts or []]


async def test_what_was_said_is_found_at_once_and_only_by_its_user_and_app(
    sqlite_service: ThreadkeepSessionService, memories: ThreadkeepMemoryService
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    await sqlite_service.append_event(session, said("user", "I am allergic to peanuts"))
    await sqlite_service.append_event(session, said("guide", "我對花生過敏，知道了"))
    await memories.add_session_to_memory(session)  # changes nothing
    assert (await found(memories, "peanut allergy"))[0] == "I am allergic to peanuts"
    assert "我對花生過敏，知道了" in await found(memories, "花生")
    assert await found(memories, "peanuts", app="b") == []
    assert await found(memories, "peanuts", user="v") == []
    assert await found(memories, "  ") == []


@pytest.mark.parametrize("others", [30, 400])
async def test_an_app_finds_its_own_however_much_another_app_knows(
    memories: ThreadkeepMemoryService, others: int
) -> None:
    mine = "my peanut allergy was found in 2019 when I ate a cake at school"
    theirs = [said("user", "peanut allergy") for _ in range(others)]
    await memories.add_events_to_memory(app_name="a", user_id="u", session_id="s", events=[said("user", mine)])
    await memories.add_events_to_memory(app_name="b", user_id="u", session_id="t", events=theirs)
    assert await found(memories, "peanut allergy") == [mine]
    assert len(await found(memories, "peanut allergy", app="b")) == 10


async def test_a_session_of_another_service_is_added_by_the_same_policy(memories: ThreadkeepMemoryService) -> None:
    other = InMemorySessionService()
    session = await other.create_session(app_name="a", user_id="u", session_id="s")
    for event in (said("user", "find the harbour"), asked("search", "canary"), said("guide", "the harbour is north")):
        await other.append_event(session, event)
    for _ in range(2):
        await memories.add_session_to_memory(session)
    assert sorted(await found(memories, "harbour")) == ["find the harbour", "the harbour is north"]
    assert await found(memories, "canary") == []


async def test_memories_can_be_told_and_deleted_one_by_one(memories: ThreadkeepMemoryService) -> None:
    entries = [
        MemoryEntry(content=types.Content(parts=[text(words)]), author="user", timestamp="2026-01-02T03:04:05Z")
        for words in ("likes window seats", "likes green tea")
    ]
    await memories.add_memory(app_name="a", user_id="u", memories=entries)
    response = await memories.search_memory(app_name="a", user_id="u", query="window seats")
    assert [entry.timestamp for entry in response.memories] == ["2026-01-02T03:04:05+00:00"]
    await memories.delete_memory(app_name="b", user_id="u", memory_id=response.memories[0].id)  # not that app's
    assert await found(memories, "window seats") == ["likes window seats"]
    await memories.delete_memory(app_name="a", user_id="u", memory_id=response.memories[0].id)
    assert await found(memories, "window seats") == []
    assert await found(memories, "green tea") == ["likes green tea"]
    with pytest.raises(InvalidInput):
        await memories.delete_memory(app_name="a", user_id="u", memory_id="made up")


async def test_a_turns_record_holds_words_and_summaries_and_nothing_else(
    sqlite_service: ThreadkeepSessionService, memories: ThreadkeepMemoryService
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", state={"user.locale": "vi"})
    for event in (said("user", "I am ann.example@example.com"), asked("search", "canary"), said("guide", "noted")):
        await sqlite_service.append_event(session, event)
    record = await persist_memory_from_session(session, memories)
    assert record["sessionId"] == session.id
    assert "ann.example" not in str(record)
    assert "canary" not in str(record)
    assert record["model_responses"] == ["Let me look.", "noted"]
    assert record["meta"]["locale"] == "vi"


async def test_the_plugin_tells_outsiders_only_what_policy_keeps(
    sqlite_service: ThreadkeepSessionService, memories: ThreadkeepMemoryService, tmp_path: Path
) -> None:
    def look(q: str) -> str:
        """Look."""
        return f"canaryresult {q}"

    told: list[dict[str, Any]] = []
    plugin = ThreadkeepPlugin(sqlite_service, memories, told.append)
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    script = [[text("Let me look."), call("look", q="canaryargument")], [text("It is by the harbour.")]]
    await say(
        runner_of(script, sqlite_service, [look], [plugin]), "u", "s", "I am ann.example@example.com, where is it?"
    )
    assert [one["kind"] for one in told] == ["UserMessage", "ModelResponse", "ModelResponse"]
    assert "canary" not in str(told)
    assert "ann.example" not in str(told)
    assert (await found(memories, "harbour", app=APP))[0] == "It is by the harbour."


async def test_outsiders_are_told_by_the_operators_own_rules_and_a_mediums_meta_with_it(
    sqlite_place: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\nname = "ticket"\ntype = "INTERNAL_ID"\npattern = "TCK-[0-9]{6}"\nfinds = ["TCK-123456"]\n'
    )
    monkeypatch.setenv("THREADKEEP_REDACTION_RULES", str(rules))
    monkeypatch.setenv("DATABASE_URL", sqlite_place["url"])
    told: list[dict[str, Any]] = []
    meta = {"language": "pl", "mime": "image/png", "sha256": "a" * 64}
    medium = {"summary": "Ticket TCK-123456", "modality": "image", "meta": meta | {"file": "ann.png"}}
    async with (
        ThreadkeepSessionService.from_url(**sqlite_place) as sessions,
        ThreadkeepMemoryService.from_url(**sqlite_place) as memories,
    ):
        runner = runner_of(
            [[text("Seen TCK-123456.")]] * 2, sessions, [], [ThreadkeepPlugin(sessions, None, told.append)]
        )
        await sessions.create_session(app_name=APP, user_id="u", session_id="s")
        await say(runner, "u", "s", "about TCK-123456")
        content = types.Content(role="user", parts=[text("Ticket TCK-123456")])
        config = RunConfig(custom_metadata={"media_summary": medium})
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=content, run_config=config):
            pass
        stored = await sessions.get_session(app_name=APP, user_id="u", session_id="s")
        assert [one.get("text", one.get("summary")) for one in told] == texts(stored)
        assert "TCK" not in str(told)
        assert told[2]["meta"] == meta | {"durationMs": None}
        raw = await InMemorySessionService().create_session(app_name="a", user_id="u", session_id="raw")
        raw.events.append(said("user", "about TCK-123456"))
        assert "TCK" not in str(await persist_memory_from_session(raw, memories))
        assert "TCK" not in str(await persist_memory_from_session(raw))


PHOTO = {"summary": "A menu, ask an@example.com", "modality": "image", "meta": {"lang": "vi", "mime": "image/png"}}
PHOTO_META = {"language": "vi", "mime": "image/png", "durationMs": None, "sha256": None}


def shown(words: str) -> Event:
    content = types.Content(role="user", parts=[text(words)])
    told = {"media_summary": PHOTO}
    return Event(author="user", invocation_id="i1", content=content, custom_metadata=told, timestamp=5.0)


async def test_words_typed_beside_a_picture_stand_with_the_users_words_and_absent_facts_are_none(
    sqlite_service: ThreadkeepSessionService, memories: ThreadkeepMemoryService
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    for event in (said("user", "hello"), shown("I am bob@example.com, can I eat this?"), said("guide", "yes")):
        await sqlite_service.append_event(session, event)
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert stored is not None
    for one in (session, stored):  # as it was said, and as it was read again
        record = await persist_memory_from_session(one, memories)
        assert record["user_messages"] == ["hello", "I am [REDACTED:EMAIL], can I eat this?"]
        assert record["user_media_summaries"] == [
            {"summary": "A menu, ask [REDACTED:EMAIL]", "modality": "image", "meta": PHOTO_META}
        ]


def test_the_filter_of_the_memory_tools_takes_adks_own_events() -> None:
    partial = Event(author="guide", content=types.Content(role="model", parts=[text("the har")]), partial=True)
    events = [shown("can I eat this?"), asked("search", "canary"), partial, said("guide", "yes, an@example.com")]
    assert [is_persistable_event(event) for event in events] == [True, True, False, True]
    assert not is_persistable_event(answered("search", "canary"))
    kept = before_persist(events)
    assert [(one["kind"], one.get("text")) for one in kept] == [
        ("UserMessage", "can I eat this?"),
        ("UserMessage", None),
        ("ModelResponse", "Let me look."),
        ("ModelResponse", "yes, [REDACTED]"),
    ]
    assert kept[1] == {
        "kind": "UserMessage",
        "modality": "image",
        "summary": "A menu, ask [REDACTED]",
        "meta": PHOTO_META,
        "ts": 5.0,
    }


async def test_an_outward_that_is_a_coroutine_function_is_awaited(sqlite_service: ThreadkeepSessionService) -> None:
    told: list[str] = []

    async def outward(event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        told.append(event["text"])

    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    plugin = ThreadkeepPlugin(sqlite_service, outward=outward)
    await say(runner_of([[text("by the harbour")]], sqlite_service, [], [plugin]), "u", "s", "where is it?")
    assert told == ["where is it?", "by the harbour"]


async def test_a_photo_that_comes_without_a_summary_is_named_in_the_log_and_the_turn_goes_on(
    sqlite_service: ThreadkeepSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    photo = types.Part.from_bytes(data=b"canarypixels", mime_type="image/png")
    runner = runner_of([[text("a menu")], [text("yes")]], sqlite_service, [], [ThreadkeepPlugin(sqlite_service)])
    await say(runner, "u", "s", types.Content(role="user", parts=[photo]))
    await say(runner, "u", "s", types.Content(role="user", parts=[photo, text("can I eat this?")]))
    stored = await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored) == ["a menu", "can I eat this?", "yes"]
    reason = "image was not kept: it came without a media_summary in the run's custom_metadata"
    assert [one for one in caplog.messages if "was not kept" in one] == [reason] * 2


async def test_a_run_that_fails_lets_the_next_one_in(sqlite_service: ThreadkeepSessionService) -> None:
    def broken(q: str) -> str:
        """Break."""
        raise LookupError(q)

    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    plugin = ThreadkeepPlugin(sqlite_service)
    with pytest.raises(LookupError):
        await say(runner_of([[call("broken", q="x")]], sqlite_service, [broken], [plugin]), "u", "s", "first")
    await say(runner_of([[text("fine")]], sqlite_service, [], [plugin]), "u", "s", "second")
    stored = await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored) == ["first", "second", "fine"]


@pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning")  # AgentTool's own
async def test_an_agent_that_is_called_as_a_tool_leaves_nothing_and_tells_nobody(
    sqlite_service: ThreadkeepSessionService, memories: ThreadkeepMemoryService, sqlite_place: dict[str, Any]
) -> None:
    """Its runner has the plugins of the one that calls it, and a session that nobody else knows."""
    helper = LlmAgent(name="helper", description="helps", model=ScriptedModel([[text("canaryresult")]]))
    told: list[dict[str, Any]] = []
    script = [[call("helper", request="canaryargument")], [text("Here it is.")]]
    plugin = ThreadkeepPlugin(sqlite_service, memories, told.append)
    runner = runner_of(script, sqlite_service, [AgentTool(helper)], [plugin], memories)
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    await say(runner, "u", "s", "find it")
    assert [one["text"] for one in told] == ["find it", "Here it is."]
    assert await found(memories, "canaryargument canaryresult", app=APP) == []
    assert not [value for value in await every_value(sqlite_place["url"]) if b"canary" in value]


@pytest.mark.parametrize("durability", ["fast", "durable"])
async def test_the_outward_log_has_what_is_new_in_a_session_that_is_added_after_every_turn(
    place: dict[str, Any], tmp_path: Path, durability: Literal["fast", "durable"]
) -> None:
    """The mode is one of Redis; without one it changes nothing."""
    log, other = tmp_path / "outward.jsonl", InMemorySessionService()
    settings = Settings(outward_log=str(log), durability=durability)
    session = await other.create_session(app_name="a", user_id="u", session_id="s")
    async with ThreadkeepMemoryService.from_url(**place, settings=settings) as memories:
        for turn in range(30):  # more than a window holds
            await other.append_event(session, said("user", f"question {turn}", f"i{turn}"))
            await other.append_event(session, said("guide", f"answer {turn}", f"i{turn}"))
            for _ in range(2):
                await memories.add_session_to_memory(session)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [line["text"] for line in lines if line["event"] != "append"]
    assert told == [f"{what} {turn}" for turn in range(30) for what in ("question", "answer")]
    assert [len(line["kept"]) for line in lines if line["event"] == "append"] == [2] * 30
