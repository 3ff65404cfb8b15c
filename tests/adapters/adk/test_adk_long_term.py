"""What outlives a session's turns: its intent and a short summary, found by search until their own time has come."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from tests.adapters.adk.scripted import APP, runner_of, say, text
from tests.adapters.adk.test_adk_sessions import said
from tests.adapters.database import rows
from threadkeep import Scope, open_memory
from threadkeep.adapters.adk import (
    ThreadkeepMemoryService,
    ThreadkeepPlugin,
    ThreadkeepSessionService,
    persist_memory_from_session,
)
from threadkeep.compose.upkeep import open_retention
from threadkeep.errors import ModelUnavailable
from threadkeep.models.chat import choice
from threadkeep.ports.chat import ChatReply, ChatRequest
from threadkeep.settings import Settings

SAID = (
    said("user", "I am allergic to peanuts, mail ann@example.com. Which soup is safe for me?"),
    said("guide", "The tomato soup at the harbour kitchen is safe, and it costs 12 dollars."),
)


async def session_of(*events: Event, id_: str = "s", state: dict[str, Any] | None = None) -> Session:
    other = InMemorySessionService()
    session = await other.create_session(app_name="a", user_id="u", session_id=id_, state=state)
    for event in events:
        await other.append_event(session, event)
    return session


async def entries(memories: ThreadkeepMemoryService, query: str, app: str = "a", user: str = "u") -> list[Any]:
    return list((await memories.search_memory(app_name=app, user_id=user, query=query)).memories)


async def found(memories: ThreadkeepMemoryService, query: str, app: str = "a", user: str = "u") -> list[str]:
    return [entry.content.parts[0].text for entry in await entries(memories, query, app, user)]


async def move_dates(url: str, tenant: str, days: float) -> None:
    """Everything of the tenant is so much older. Reflections name nobody: the database is the test's own."""
    past = int(timedelta(days=days).total_seconds() * 1_000_000)
    await rows(url, f"UPDATE tk_messages SET ts = ts - {past}, stored_at = stored_at - {past}")
    for column in ("started_at", "last_activity_at"):
        await rows(url, f"UPDATE tk_conversations SET {column} = {column} - {past}")
    await rows(url, f"UPDATE tk_reflections SET created_at = created_at - {past}")


async def retained(url: str, **days: float) -> None:
    async with open_retention(url, settings=Settings(**days)) as retention:  # type: ignore[arg-type]
        await retention.run(force=True)


async def test_a_session_is_found_by_its_summary_and_intent_once_its_turns_have_aged_out(
    sqlite_place: dict[str, Any],
) -> None:
    url = sqlite_place["url"]
    session = await session_of(*SAID, state={"conversation.intentSummary": "a meal for bob@example.com with allergies"})
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await persist_memory_from_session(session, memories)
        turns = await found(memories, "allergic peanuts")
        assert turns[0].startswith("I am allergic to peanuts, mail [REDACTED:EMAIL]")
        assert all("a meal" not in one for one in turns)  # the turns themselves are there
        await move_dates(url, "shop", 100)
        await retained(url)
        (entry,) = await entries(memories, "peanut allergy")
        assert "peanuts" in entry.content.parts[0].text
        assert "a meal for [REDACTED:EMAIL] with allergies" in entry.content.parts[0].text
        assert entry.custom_metadata == {"kind": "session_summary"}
        assert [await found(memories, asked) for asked in ("harbour soup", "meal")] == [
            [entry.content.parts[0].text]
        ] * 2
        assert await found(memories, "peanut allergy", app="b") == []
        assert await found(memories, "peanut allergy", user="v") == []
        await retained(url, memory_retention_days=150)
        assert len(await found(memories, "peanut allergy")) == 1
        await retained(url, memory_retention_days=99)
        assert await found(memories, "peanut allergy") == []
    async with open_memory(url) as memory:
        (kept,) = [record async for record in memory.export(Scope("shop", "u"))]
    assert (kept.intent, kept.reflections) == (None, ())


async def test_a_session_is_found_by_its_summary_while_its_window_in_redis_goes_on(
    sqlite_place: dict[str, Any], redis_server: Any
) -> None:
    redis_server.wipe()
    url, redis = sqlite_place["url"], redis_server.url
    async with ThreadkeepMemoryService.from_url(**sqlite_place, redis=redis) as memories:
        await persist_memory_from_session(await session_of(*SAID), memories)
        async with open_memory(url, redis=redis) as memory:
            await memory.flushed()
            assert await memory.session(Scope("shop", "u", "s")) is not None
        await move_dates(url, "shop", 100)
        async with open_retention(url, redis=redis) as retention:
            assert (await retention.run(force=True)).turns == 2
        (entry,) = await entries(memories, "peanut allergy")
        assert entry.custom_metadata == {"kind": "session_summary"}


async def test_the_summary_stands_on_every_database(place: dict[str, Any]) -> None:
    session = await session_of(*SAID, state={"conversation.intentSummary": "food allergies"})
    async with ThreadkeepMemoryService.from_url(**place) as memories:
        for _ in range(2):
            await persist_memory_from_session(session, memories)
    async with open_memory(place["url"], redis=place.get("redis")) as memory:
        (kept,) = [record async for record in memory.export(Scope(place["tenant"], "u"))]
        (summary,) = kept.reflections
        assert (kept.intent, summary.kind) == ("food allergies", "session")
        assert summary.reflection.causes == ("food allergies",)
        whole = "\n".join(message.content for message in kept.messages)
        assert 0 < len(summary.reflection.summary) < len(whole)
        assert "ann@" not in summary.reflection.summary


async def test_a_session_that_goes_on_keeps_what_its_first_summary_said(sqlite_place: dict[str, Any]) -> None:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await persist_memory_from_session(await session_of(*SAID), memories)
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        later = said("user", "Where do I park a camper van near the museum?", "i2")
        await persist_memory_from_session(await session_of(later), memories)
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        (summary,) = await found(memories, "peanuts")
        assert await found(memories, "camper van") == [summary]


async def test_what_was_said_stands_before_a_summary_that_knows_no_more(sqlite_place: dict[str, Any]) -> None:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await persist_memory_from_session(await session_of(*SAID), memories)
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        await persist_memory_from_session(await session_of(said("user", "are peanuts in it?"), id_="later"), memories)
        fresh, old = await found(memories, "peanuts")
        assert fresh == "are peanuts in it?"
        assert "harbour" in old


async def test_a_summary_goes_with_what_it_was_made_of(sqlite_place: dict[str, Any]) -> None:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await persist_memory_from_session(await session_of(*SAID), memories)
        await persist_memory_from_session(await session_of(said("user", "I collect old stamps"), id_="t"), memories)
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        (entry,) = await entries(memories, "peanuts")
        await memories.delete_memory(app_name="a", user_id="u", memory_id=entry.id)
        assert await found(memories, "peanuts") == []
        assert len(await found(memories, "stamps")) == 1
        async with open_memory(sqlite_place["url"]) as memory:
            await memory.erase(Scope("shop", "u"))
        assert await found(memories, "stamps") == []


async def test_the_plugin_leaves_a_summary_of_each_session(
    sqlite_place: dict[str, Any], sqlite_service: ThreadkeepSessionService
) -> None:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
        runner = runner_of(
            [[text("It is by the harbour.")]], sqlite_service, [], [ThreadkeepPlugin(sqlite_service, memories)]
        )
        await say(runner, "u", "s", "where is the lighthouse museum?")
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        (summary,) = await found(memories, "lighthouse", app=APP)
        assert "harbour" in summary


class Shortens:
    """In place of a hosted model."""

    name, generates = "scripted:short", True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.asked.append(str(request.messages))
        if self.away:
            raise ModelUnavailable("away")
        return ChatReply("Ann (ann@example.com) must not eat peanuts.")

    def chosen(self, *_: object) -> Shortens:
        return self

    async def close(self) -> None: ...


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Shortens:
    made = Shortens()
    monkeypatch.setenv("THREADKEEP_CHAT_MODEL", "gemini:flash")
    monkeypatch.setattr(choice, "chat_model_for", made.chosen)
    return made


async def test_the_model_that_is_configured_writes_the_summary_of_what_memory_keeps(
    sqlite_place: dict[str, Any], model: Shortens
) -> None:
    session = await session_of(*SAID)
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        for _ in range(2):
            await persist_memory_from_session(session, memories)
        assert len(model.asked) == 1  # nothing was said since
        assert "ann@" not in model.asked[0]
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        assert await found(memories, "peanuts") == ["Ann ([REDACTED:EMAIL]) must not eat peanuts."]


async def test_a_model_that_does_not_answer_leaves_the_summary_to_the_words_of_the_session(
    sqlite_place: dict[str, Any], model: Shortens, caplog: pytest.LogCaptureFixture
) -> None:
    model.away = True
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        await persist_memory_from_session(await session_of(*SAID), memories)
        await move_dates(sqlite_place["url"], "shop", 100)
        await retained(sqlite_place["url"])
        assert len(await found(memories, "harbour kitchen")) == 1
    assert "a session is summarised without its model (ModelUnavailable)" in caplog.messages


async def test_a_run_does_not_wait_for_the_model_and_close_does(
    sqlite_place: dict[str, Any], sqlite_service: ThreadkeepSessionService, model: Shortens
) -> None:
    free = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slowly(request: ChatRequest) -> ChatReply:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(free.wait(), loop))
        return ChatReply("The harbour was asked about.")

    model.reply = slowly  # type: ignore[method-assign]
    memories = ThreadkeepMemoryService.from_url(**sqlite_place)
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    plugin = ThreadkeepPlugin(sqlite_service, memories)
    await say(runner_of([[text("North.")]], sqlite_service, [], [plugin]), "u", "s", "where is the harbour?")
    free.set()
    await memories.close()
    async with open_memory(sqlite_place["url"]) as memory:
        (kept,) = await memory.reflections(Scope("shop", "u"), "session")
    assert kept.reflection.summary == "The harbour was asked about."


class Elsewhere(BaseMemoryService):
    """A memory service of somebody else."""

    def __init__(self) -> None:
        self.added: list[str] = []

    async def add_session_to_memory(self, session: Session) -> None:
        await asyncio.sleep(0)
        self.added.append(session.id)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        return SearchMemoryResponse()


async def test_another_memory_service_is_handed_the_session_awaited_or_not() -> None:
    elsewhere = Elsewhere()
    session = await session_of(*SAID)
    record = await persist_memory_from_session(session, elsewhere)
    assert record["sessionId"] == "s"
    persist_memory_from_session(session, elsewhere)
    async with asyncio.timeout(10):
        while len(elsewhere.added) < 2:
            await asyncio.sleep(0)
    assert (await asyncio.to_thread(persist_memory_from_session, session, elsewhere)) is not None
    assert elsewhere.added == ["s"] * 3


async def test_a_session_that_nobody_awaits_is_stored_when_the_service_closes(sqlite_place: dict[str, Any]) -> None:
    session = await session_of(*SAID)
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        assert await found(memories, "peanuts") == []  # the stores are open
        persist_memory_from_session(session, memories)
    async with open_memory(sqlite_place["url"]) as memory:
        (kept,) = [record async for record in memory.export(Scope("shop", "u"))]
    assert (len(kept.messages), len(kept.reflections)) == (2, 1)


async def test_what_fails_and_is_not_awaited_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    session = await session_of(*SAID)
    async with ThreadkeepMemoryService.from_url("sqlite:////dev/null/none.db") as memories:
        persist_memory_from_session(session, memories)
        async with asyncio.timeout(10):
            while not caplog.records:
                await asyncio.sleep(0.01)
    gc.collect()  # asyncio tells of an exception that nobody has looked at when its future is collected
    (logged,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert logged.message.startswith("a session was not persisted: ")


async def test_an_awaiter_that_is_cancelled_leaves_the_storing_alone(sqlite_place: dict[str, Any]) -> None:
    async with ThreadkeepMemoryService.from_url(**sqlite_place) as memories:
        doing = persist_memory_from_session(await session_of(*SAID), memories)
        waiting = asyncio.ensure_future(asyncio.wait_for(doing, 60))
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await doing
        assert len(await found(memories, "peanuts")) >= 1


CALLS = {
    "in a plain script": "persist_memory_from_session(session)",
    "inside a running loop": """
        async def turn():
            persist_memory_from_session(session)
        asyncio.run(turn())
    """,
}


@pytest.mark.parametrize("module", ["threadkeep.compat", "threadkeep.adapters.adk"])
@pytest.mark.parametrize("where", CALLS)
async def test_called_as_the_document_calls_it_a_session_is_stored(
    tmp_path: Path, where: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    monkeypatch.setenv("DATABASE_URL", url)
    script = f"""
        import asyncio
        from google.adk.events.event import Event
        from google.adk.sessions.session import Session
        from google.genai import types
        from {module} import persist_memory_from_session

        def event(author, words):
            return Event(author=author, content=types.Content(parts=[types.Part(text=words)]))

        events = [event("user", "I am allergic to peanuts, call 0912 345 678"), event("guide", "I have noted it.")]
        session = Session(id="s1", app_name="a", user_id="u", events=events,
                          state={{"conversation.intentSummary": "tell an allergy"}})
        {textwrap.dedent(CALLS[where]).strip().replace(chr(10), chr(10) + " " * 8)}
    """
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    async with ThreadkeepMemoryService.from_url(url) as memories:
        assert (await found(memories, "peanuts"))[0] == "I am allergic to peanuts, call [REDACTED:PHONE]"
    async with open_memory(url) as memory:
        (kept,) = [record async for record in memory.export(Scope(user="u"))]
    assert kept.intent == "tell an allergy"
    assert [one.kind for one in kept.reflections] == ["session"]


async def test_the_hot_store_that_the_environment_names_is_used(
    tmp_path: Path, redis_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    async with (
        ThreadkeepSessionService.from_url(url) as sessions,
        ThreadkeepMemoryService.from_url(url) as memories,
    ):
        session = await sessions.create_session(app_name="a", user_id="u", session_id="s")
        await sessions.append_event(session, said("user", "of the hot store"))
        await memories.add_session_to_memory(session)
        monkeypatch.delenv("REDIS_URL")
        async with open_memory(url, redis=redis_server.url, attach=False) as memory:
            assert (await memory.health()).status == "ok"
        async with open_memory(url, redis="") as memory:
            problem = await memory.health()
    assert problem.status != "ok"  # the archive has a Redis, and this process has none
