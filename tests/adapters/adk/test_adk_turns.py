"""Turns in flight: encrypted until they end, resumed while a call waits, written by one at a time."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.state import State
from google.adk.tools import ToolContext
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from tests.adapters.adk.conftest import Open
from tests.adapters.adk.scripted import APP, call, runner_of, say, text, texts
from tests.adapters.adk.test_adk_sessions import said
from tests.adapters.database import every_value
from threadkeep import compat
from threadkeep.adapters.adk import ThreadkeepPlugin, ThreadkeepSessionService, TurnLimits, put_tool_cache
from threadkeep.adapters.sealing import Seal
from threadkeep.adapters.stores_thread import StoresThread
from threadkeep.compose.memory import open_agent_stores
from threadkeep.errors import InvalidInput
from threadkeep.settings import Settings
from threadkeep.testing.clock import FakeClock

ROUNDS = int(os.environ.get("ADK_ROUNDS", "0"))  # with 200, minutes for each store: give `--timeout=0` too


def asked(tool: str, needle: str, invocation: str = "i1", **more: Any) -> Event:
    part = types.Part(function_call=types.FunctionCall(id="c1", name=tool, args={"q": needle}))
    content = types.Content(role="model", parts=[types.Part(text="Let me look."), part])
    return Event(author="guide", invocation_id=invocation, content=content, **more)


def answered(tool: str, needle: str, author: str = "guide", invocation: str = "i1") -> Event:
    part = types.Part(function_response=types.FunctionResponse(id="c1", name=tool, response={"found": needle}))
    return Event(author=author, invocation_id=invocation, content=types.Content(role="user", parts=[part]))


async def test_traffic_of_tools_rests_encrypted_and_is_gone_when_the_turn_ends(
    service: ThreadkeepSessionService, place: dict[str, Any]
) -> None:
    needle = f"canary{uuid4().hex}"
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    for event in (said("user", "find it"), asked("search", needle), answered("search", needle)):
        await service.append_event(session, event)
    meanwhile = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert meanwhile == session  # another process could go on from here
    assert not [value for value in await every_value(place["url"]) if needle.encode() in value]
    await service.append_event(session, said("guide", "found it"))
    after = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(after) == ["find it", "Let me look.", "found it"]
    assert needle not in after.model_dump_json()  # type: ignore[union-attr]


async def test_media_rests_encrypted_while_the_turn_lasts_and_is_gone_with_it(
    sqlite_service: ThreadkeepSessionService, sqlite_place: dict[str, Any]
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    parts = [types.Part.from_bytes(data=b"canarypixels" * 50, mime_type="image/png")]
    summary = {"summary": "a photo of a menu", "modality": "image", "meta": {"mime": "image/png", "note": "no"}}
    shown = Event(
        author="user",
        invocation_id="i1",
        content=types.Content(role="user", parts=parts),
        custom_metadata={"media_summary": summary},
    )
    await sqlite_service.append_event(session, shown)
    meanwhile = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert meanwhile.events[0].content.parts[0].inline_data.data == b"canarypixels" * 50  # type: ignore[union-attr,index]
    await sqlite_service.append_event(session, said("guide", "It lists soup."))
    after = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(after) == ["a photo of a menu", "It lists soup."]
    found = await every_value(sqlite_place["url"])
    assert not [value for value in found if b"canarypixels" in value or b"Y2FuYXJ5cGl4ZWxz" in value]


async def test_of_an_error_only_its_code_is_kept(
    sqlite_service: ThreadkeepSessionService, sqlite_place: dict[str, Any]
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    codes = ("MAX_TOKENS", "429", "ValueError: canary of search('canary')", "c" * 65, "0912345678")
    for code in codes:
        failed = Event(author="guide", invocation_id="i1", error_code=code, error_message=f"canary: {code}")
        await sqlite_service.append_event(session, failed)
    after = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert [one.error_code for one in after.events] == ["MAX_TOKENS", "429", None, None, None]  # type: ignore[union-attr]
    assert not [value for value in await every_value(sqlite_place["url"]) if b"canary" in value or b"0912345" in value]


@pytest.fixture
def clocked(sqlite_place: dict[str, Any]) -> tuple[ThreadkeepSessionService, FakeClock]:
    clock, settings = FakeClock(), Settings()
    stores = StoresThread(lambda: open_agent_stores(sqlite_place["url"], settings, None, clock))
    return ThreadkeepSessionService(stores, "shop", Seal(None)), clock


async def test_a_turn_that_never_ends_is_gone_after_its_ttl(
    clocked: tuple[ThreadkeepSessionService, FakeClock],
) -> None:
    service, clock = clocked
    async with service:
        session = await service.create_session(app_name="a", user_id="u", session_id="s")
        await service.append_event(session, said("user", "find it"))
        await service.append_event(session, asked("search", "canary"))
        clock.advance(timedelta(minutes=31).total_seconds())
        after = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert "canary" not in after.model_dump_json()  # type: ignore[union-attr]
        assert await service.sweep() == 1


def search(query: str, tool_context: ToolContext) -> str:
    """Search."""
    put_tool_cache(tool_context.state, "results", f"canary{query}")
    put_tool_cache(tool_context.state, "ids", [query], ttl_seconds=10 * 60)
    return "found"


async def test_what_a_tool_caches_serves_later_turns_for_as_long_as_it_says(
    clocked: tuple[ThreadkeepSessionService, FakeClock], sqlite_place: dict[str, Any]
) -> None:
    service, clock = clocked
    async with service:
        await service.create_session(app_name=APP, user_id="u", session_id="s")
        script = [[call("search", query="x")], [text("Here.")], [text("Again.")]]
        runner = runner_of(script, service, [search], [ThreadkeepPlugin(service)])

        async def state() -> dict[str, Any]:
            session = await service.get_session(app_name=APP, user_id="u", session_id="s")
            assert session is not None
            return session.state

        await say(runner, "u", "s", "find it")
        clock.advance(599)
        await say(runner, "u", "s", "and again")
        assert await state() == {"tool.temp.results": "canaryx", "tool.temp.ids": ["x"]}
        clock.advance(2)
        assert await state() == {"tool.temp.results": "canaryx"}
        clock.advance(300)
        assert await state() == {}
    assert not [value for value in await every_value(sqlite_place["url"]) if b"canary" in value]


def test_a_tool_caches_by_the_name_that_existing_applications_call_too() -> None:
    states = [State({}, {}), State({}, {})]
    for state, cache in zip(states, (put_tool_cache, compat.put_tool_cache), strict=True):
        cache(state, "results", ["a"], ttl_seconds=600)
    assert states[0].to_dict() == states[1].to_dict()
    assert states[1]["tool.temp.results"] == ["a"]
    with pytest.raises(InvalidInput, match=r"^state: .* tool_context\.state"):
        compat.put_tool_cache({}, "results", ["a"])  # a session's own state, which ADK would not store


def test_a_tool_caches_nothing_for_more_than_half_an_hour() -> None:
    state = State({}, {})
    with pytest.raises(InvalidInput, match="ttl_seconds"):
        put_tool_cache(state, "results", 1, ttl_seconds=1801)
    assert state.to_dict() == {}


async def test_a_call_that_waits_stays_for_seven_days_and_no_longer(
    clocked: tuple[ThreadkeepSessionService, FakeClock],
) -> None:
    service, clock = clocked
    async with service:
        session = await service.create_session(app_name="a", user_id="u", session_id="s")
        await service.append_event(session, said("user", "book it"))
        await service.append_event(session, answered("search", "canaryfirst"))
        await service.append_event(session, asked("approve", "canary", long_running_tool_ids={"c1"}))
        await service.append_event(session, said("guide", "waiting for approval"))
        clock.advance(timedelta(days=6).total_seconds())
        waiting = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert "canaryfirst" in waiting.model_dump_json()  # type: ignore[union-attr]
        assert [one.name for event in waiting.events for one in event.get_function_calls()] == ["approve"]  # type: ignore[union-attr]
        clock.advance(timedelta(days=2).total_seconds())
        after = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert "canary" not in after.model_dump_json()  # type: ignore[union-attr]


async def test_an_approval_resumes_by_a_runner_in_another_process(sqlite_place: dict[str, Any], opened: Open) -> None:
    def approve(amount: int) -> None:
        """Ask somebody."""

    tools = [LongRunningFunctionTool(approve)]
    first = opened(**sqlite_place)
    await first.create_session(app_name=APP, user_id="u", session_id="s")
    events = await say(
        runner_of([[call("approve", amount=7)], [text("I asked.")]], first, tools), "u", "s", "pay 7, please"
    )
    (waiting,) = [one for event in events for one in event.get_function_calls()]
    other = opened(**sqlite_place, settings=Settings())  # stores of its own, as in another process
    yes = types.FunctionResponse(id=waiting.id, name="approve", response={"approved": True})
    answer = types.Content(role="user", parts=[types.Part(function_response=yes)])
    resumed = runner_of([[text("Paid.")]], other, tools)
    await say(resumed, "u", "s", answer)
    stored = await first.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored)[0] == "pay 7, please"
    assert texts(stored)[-1] == "Paid."
    assert not [event for event in stored.events if event.get_function_calls()]  # type: ignore[union-attr]


async def test_whoever_comes_while_a_turn_is_under_way_is_refused_before_writing(
    service: ThreadkeepSessionService,
) -> None:
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    await service.append_event(session, said("user", "first", "i1"))
    other = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert other is not None
    with pytest.raises(StaleSessionError):
        await service.append_event(other, said("user", "second", "i2"))
    await service.append_event(session, said("guide", "first answer", "i1"))
    with pytest.raises(StaleSessionError):
        await service.append_event(other, said("user", "second", "i2"))  # the turn has ended, but this copy is old
    fresh = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert fresh is not None
    await service.append_event(fresh, said("user", "second", "i2"))
    stored = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(stored) == ["first", "first answer", "second"]


async def test_a_writer_that_died_keeps_others_out_only_for_its_lease(
    clocked: tuple[ThreadkeepSessionService, FakeClock],
) -> None:
    service, clock = clocked
    async with service:
        session = await service.create_session(app_name="a", user_id="u", session_id="s")
        await service.append_event(session, said("user", "first", "i1"))
        clock.advance(TurnLimits().lease_seconds + 1)
        other = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert other is not None
        await service.append_event(other, said("user", "second", "i2"))
        with pytest.raises(StaleSessionError):
            await service.append_event(session, said("guide", "too late", "i1"))
        stored = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert texts(stored) == ["first", "second"]


class Waits(BaseAgent):
    """Says something, and the rest only to whoever waits for it."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield asked("search", "needle", ctx.invocation_id)
        if "quickly" not in (ctx.user_content.parts[0].text or ""):  # type: ignore[union-attr,index]
            await asyncio.Event().wait()
        yield said("guide", "there", ctx.invocation_id)


@pytest.mark.parametrize("how", ["its task is cancelled", "its time is up", "its time is up in a task that goes on"])
async def test_a_run_that_was_cancelled_keeps_nobody_out(how: str, service: ThreadkeepSessionService) -> None:
    app = App(name=APP, root_agent=Waits(name="guide"), plugins=[ThreadkeepPlugin(service)])
    runner = Runner(app=app, session_service=service)
    await service.create_session(app_name=APP, user_id="u", session_id="s")
    waits = asyncio.Event()

    async def first(limit: asyncio.Timeout) -> None:
        message = types.Content(role="user", parts=[text("first")])
        async with limit:
            async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
                waits.set()
                if "time is up" in how:
                    limit.reschedule(asyncio.get_running_loop().time())

    if how == "its time is up":
        with pytest.raises(TimeoutError):
            await first(asyncio.timeout(None))
    elif "goes on" in how:

        async def patiently() -> None:
            with suppress(TimeoutError):
                await first(asyncio.timeout(None))

        await asyncio.create_task(patiently())
    else:
        run = asyncio.create_task(first(asyncio.timeout(None)))
        await waits.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    await say(runner, "u", "s", "again, quickly")
    stored = await service.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored) == ["first", "Let me look.", "again, quickly", "Let me look.", "there"]
    assert not [event for event in stored.events if event.get_function_calls()]  # type: ignore[union-attr]


async def test_a_run_that_is_driven_keeps_others_out_whatever_task_they_come_from(
    sqlite_service: ThreadkeepSessionService,
) -> None:
    app = App(name=APP, root_agent=Waits(name="guide"), plugins=[ThreadkeepPlugin(sqlite_service)])
    runner = Runner(app=app, session_service=sqlite_service)
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    run = asyncio.create_task(say(runner, "u", "s", "first"))
    while len(texts(await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s"))) < 2:
        assert not run.done()
    with pytest.raises(StaleSessionError):
        await say(runner, "u", "s", "second, quickly")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await say(runner, "u", "s", "third, quickly")
    stored = await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored)[-3:] == ["third, quickly", "Let me look.", "there"]
    assert "second, quickly" not in texts(stored)


async def test_a_run_that_is_driven_a_step_at_a_time_keeps_others_out(sqlite_service: ThreadkeepSessionService) -> None:
    """Each step in a task of its own, as `asyncio.wait_for` makes one before Python 3.12."""
    app = App(name=APP, root_agent=Waits(name="guide"), plugins=[ThreadkeepPlugin(sqlite_service)])
    runner = Runner(app=app, session_service=sqlite_service)
    await sqlite_service.create_session(app_name=APP, user_id="u", session_id="s")
    message = types.Content(role="user", parts=[text("first, quickly")])
    run = runner.run_async(user_id="u", session_id="s", new_message=message)

    async def step() -> Event:
        return await anext(run)

    await asyncio.create_task(step())
    for _ in range(2):
        with pytest.raises(StaleSessionError):
            await asyncio.create_task(say(runner, "u", "s", "second, quickly"))
    meanwhile = await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s")
    assert [one.name for event in meanwhile.events for one in event.get_function_calls()] == ["search"]  # type: ignore[union-attr]
    await asyncio.create_task(step())
    with pytest.raises(StopAsyncIteration):
        await anext(run)
    await say(runner, "u", "s", "third, quickly")
    stored = await sqlite_service.get_session(app_name=APP, user_id="u", session_id="s")
    assert texts(stored)[:3] == ["first, quickly", "Let me look.", "there"]
    assert "second, quickly" not in texts(stored)


async def test_two_runners_on_one_session_never_interleave_and_lose_nothing(
    place: dict[str, Any], opened: Open, request: pytest.FixtureRequest
) -> None:
    rounds = ROUNDS or (25 if "sqlite" in request.node.callspec.id else 5)
    services = [opened(**place), opened(**place, settings=Settings())]
    await services[0].create_session(app_name=APP, user_id="u", session_id="s")

    def look(q: str) -> str:
        """Look."""
        return f"found {q}"

    def script(name: str) -> Any:
        for number in itertools.count():
            yield [call("look", q=str(number))]
            yield [text(f"answer to {name}")]

    won: list[str] = []

    async def once(name: str, service: ThreadkeepSessionService, number: int, over: asyncio.Event) -> int:
        """Until it has had its turn; how often it was refused."""
        for refused in itertools.count():
            try:
                runner = runner_of(script(name), service, [look], [ThreadkeepPlugin(service)])
                await say(runner, "u", "s", f"{name} {number}", recent=10)
            except StaleSessionError:
                await over.wait()  # the other one's turn
                continue
            over.set()
            won.append(f"{name} {number}")
            return refused
        raise AssertionError

    refused = 0
    for number in range(rounds):
        over = asyncio.Event()
        refused += sum(await asyncio.gather(*(once(*who, number, over) for who in zip("ab", services, strict=True))))
    assert refused >= rounds // 2  # they did get into each other's way
    stored = await services[0].get_session(app_name=APP, user_id="u", session_id="s")
    kept = texts(stored)
    assert kept[::2] == won
    assert kept[1::2] == [f"answer to {one[0]}" for one in won]


async def test_parallel_branches_of_one_run_share_a_session(sqlite_service: ThreadkeepSessionService) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    await sqlite_service.append_event(session, said("user", "ask both"))
    spoken = [said(f"agent{number}", f"part {number}", branch=f"b{number}") for number in range(8)]
    await asyncio.gather(*(sqlite_service.append_event(session, event) for event in spoken))
    await sqlite_service.flush()
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert sorted(texts(stored)) == ["ask both", *(f"part {number}" for number in range(8))]
    assert texts(stored) == texts(session)


async def test_a_plugin_tells_a_recordings_summary_and_not_what_was_said_in_it(tmp_path: Path) -> None:
    summary = {"summary": "Asks for a room.", "modality": "voice", "meta": {"mime": "audio/wav", "path": "/x"}}
    told: list[dict[str, Any]] = []
    async with ThreadkeepSessionService.from_url(f"sqlite:///{tmp_path}/told.db") as service:
        await service.create_session(app_name=APP, user_id="u", session_id="c")
        runner = runner_of([[text("Noted.")]], service, plugins=[ThreadkeepPlugin(service, None, told.append)])
        said = types.Content(role="user", parts=[text("canarytranscript: is there a room?")])
        config = RunConfig(custom_metadata={"media_summary": summary})
        async for _ in runner.run_async(user_id="u", session_id="c", new_message=said, run_config=config):
            pass

    assert "canarytranscript" not in str(told)
    assert [one.get("summary") or one["text"] for one in told] == ["Asks for a room.", "Noted."]
