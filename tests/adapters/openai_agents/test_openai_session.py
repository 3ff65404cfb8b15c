"""The Agents SDK's session: its protocol, our policy, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Runner, SessionSettings, function_tool, set_tracing_disabled
from agents.extensions.memory import EncryptedSession
from agents.memory import Session
from agents.memory.session import is_openai_responses_compaction_aware_session

from tests.adapters.database import every_value
from tests.adapters.openai_agents.scripted import ScriptedModel, call, said
from threadkeep import open_memory
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.errors import InvalidEvent, InvalidSetting, MemoryClosed
from threadkeep.scope import Scope
from threadkeep.settings import Settings

set_tracing_disabled(True)
Open = Callable[..., ThreadkeepSession]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part]}


CALL = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "canaryargument"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "canaryresult"}


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'sessions.db'}"
    return request.getfixturevalue(f"{request.param}_server").url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sessions.db'}"


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    sessions: list[ThreadkeepSession] = []

    def open_(url: str, id_: str | None = None, **options: Any) -> ThreadkeepSession:
        sessions.append(ThreadkeepSession(id_ or f"s-{uuid4()}", url, **options))
        return sessions[-1]

    yield open_
    for session in sessions:
        await session.aclose()


async def test_items_come_back_as_they_were_in_the_order_they_were_added(url: str, opened: Open) -> None:
    session = opened(url)
    items = [user("hello"), assistant("hi"), user("Đơn hàng ở đâu?"), assistant("花生")]
    await session.add_items(items[:2])
    await session.add_items(items[2:])
    assert isinstance(session, Session)
    assert await session.get_items() == items
    assert await session.get_items(limit=3) == items[1:]
    assert await session.get_items(limit=0) == []
    assert await session.pop_item() == items[-1]
    assert await session.get_items() == items[:-1]
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([user("again")])
    assert await session.get_items() == [user("again")]


async def test_the_same_session_id_of_two_users_is_two_sessions(url: str, opened: Open) -> None:
    id_ = f"s-{uuid4()}"
    bob, other_bob = opened(url, id_, user=f"bob-{id_}"), opened(url, id_, user=f"Bob-{id_}")
    await bob.add_items([user("mine")])
    assert await other_bob.get_items() == []


async def test_settings_limit_what_is_read_and_an_explicit_limit_wins(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url, session_settings=SessionSettings(limit=2))
    await session.add_items([user(str(number)) for number in range(5)])
    assert await session.get_items() == [user("3"), user("4")]
    assert await session.get_items(limit=4) == [user(str(number)) for number in (1, 2, 3, 4)]


async def test_more_than_a_page_of_items_is_read_whole(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    for start in range(0, 1_200, 400):
        await session.add_items([user(str(number)) for number in range(start, start + 400)])
    assert await session.get_items() == [user(str(number)) for number in range(1_200)]


async def test_tool_items_are_not_kept_unless_asked_for(url: str, opened: Open) -> None:
    session = opened(url)
    await session.add_items([user("find it"), CALL, OUTPUT, {"type": "reasoning", "summary": ["canarythought"]}])
    await session.add_items([assistant("found it")])
    assert await session.get_items() == [user("find it"), assistant("found it")]
    found = await every_value(url)
    assert not [value for value in found if b"canary" in value]


async def test_what_was_refused_is_told_by_the_receipt(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,canary"}]}
    unknown = {"type": "something_new", "payload": "canary"}
    await session.add_items([CALL, OUTPUT, image, unknown, {"role": "developer", "content": "be kind"}])
    assert session.last_receipt is not None
    assert session.last_receipt.refused == {
        "tool_request": 1,
        "tool_result": 1,
        "media_without_summary": 1,
        "debug_trace": 1,
        "system_note": 1,
    }
    assert await session.get_items() == []


async def test_tool_items_with_a_ttl_rest_encrypted_and_come_back_in_pairs(url: str, opened: Open) -> None:
    session = opened(url, tool_items="ttl")
    lonely = CALL | {"call_id": "c2"}
    await session.add_items([user("find it"), CALL, OUTPUT, assistant("found it"), lonely])
    assert await session.get_items() == [user("find it"), CALL, OUTPUT, assistant("found it")]
    assert await session.get_items(limit=3) == [assistant("found it")]  # the call would stand there without its result
    assert not [value for value in await every_value(url) if b"canary" in value]


async def test_tool_items_are_gone_after_their_ttl(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url, tool_items="ttl", tool_ttl_seconds=1e-6)
    await session.add_items([user("find it"), CALL, OUTPUT, assistant("found it")])
    assert await session.get_items() == [user("find it"), assistant("found it")]


async def test_personal_data_is_masked_before_the_first_write(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    await session.add_items([user("write to jan.kowalski@example.com")])
    (item,) = await session.get_items()
    assert "jan.kowalski" not in item["content"]
    assert not [value for value in await every_value(sqlite_url) if b"kowalski" in value]


async def test_compaction_leaves_items_out_and_erases_nothing(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url, "c1", user="u1", compact_after=4)
    assert is_openai_responses_compaction_aware_session(session)
    await session.add_items([user(f"number {number}") for number in range(4)])
    await session.run_compaction({})
    assert len(await session.get_items()) == 4
    await session.add_items([user("number 4")])
    await session.run_compaction({})
    assert await session.get_items() == [user(f"number {number}") for number in (1, 2, 3, 4)]
    async with open_memory(sqlite_url) as memory:
        assert len((await memory.history(Scope(user="u1", conversation="c1"), limit=50)).messages) == 5


async def test_erasing_the_user_erases_the_session(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url, "c1", user="u1", tool_items="ttl")
    await session.add_items([user("remember me"), CALL, OUTPUT])
    async with open_memory(sqlite_url) as memory:
        assert (await memory.erase(Scope(user="u1"))).complete
    assert await session.get_items() == []


def encrypted(session: ThreadkeepSession, key: str = "a high-entropy key of the application's own") -> Any:
    return EncryptedSession(session.session_id, session, key)  # type: ignore[arg-type]


async def test_a_session_that_the_sdk_encrypts_gives_every_item_back_in_order(url: str, opened: Open) -> None:
    session = opened(url)
    items = [user("canaryquestion"), CALL, OUTPUT, assistant("canaryanswer")]
    await encrypted(session).add_items(items[:2])
    await encrypted(session).add_items(items[2:])

    again = encrypted(opened(url, session.session_id))
    assert await again.get_items() == items
    assert await again.get_items(3) == items[1:]
    assert await encrypted(session, "another key").get_items() == []
    assert await session.get_items() != []
    assert await every_value(url)
    assert not [value for value in await every_value(url) if b"canary" in value]

    assert await again.pop_item() == items[-1]
    assert await again.get_items() == items[:-1]
    await again.clear_session()
    assert await again.get_items() == []
    assert await again.pop_item() is None


async def test_a_runner_with_a_tool_goes_on_in_a_session_that_the_sdk_encrypts(url: str, opened: Open) -> None:
    session = opened(url)
    model = ScriptedModel(call("search", '{"q": "weather"}'), said("It is sunny."), said("Warm too."))
    agent = Agent(name="guide", model=model, tools=[function_tool(_search, name_override="search")])
    await Runner.run(agent, "What is the weather?", session=encrypted(session))
    await Runner.run(agent, "And tomorrow?", session=encrypted(session))
    kinds = [item.get("type", item.get("role")) for item in model.asked[-1]]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]


async def test_adds_of_several_processes_to_an_encrypted_session_keep_each_ones_order(url: str, opened: Open) -> None:
    first = opened(url)
    second = opened(url, first.session_id, settings=Settings())  # opens stores of its own

    async def add(session: ThreadkeepSession, name: str) -> None:
        for number in range(10):
            await encrypted(session).add_items([user(f"{name}{number}a"), user(f"{name}{number}b")])

    await asyncio.gather(add(first, "x"), add(second, "y"))
    texts = [item["content"] for item in await encrypted(first).get_items()]
    for name in ("x", "y"):
        expected = [f"{name}{number}{part}" for number in range(10) for part in "ab"]
        assert [text for text in texts if text.startswith(name)] == expected


async def test_erasing_the_user_erases_what_the_sdk_encrypted(url: str, opened: Open) -> None:
    owner = f"u-{uuid4()}"
    session = opened(url, user=owner)
    await encrypted(session).add_items([user("remember me")])
    async with open_memory(url) as memory:
        assert (await memory.erase(Scope(user=owner))).complete
    assert await session.get_items() == []


async def test_what_the_sdk_encrypted_stands_beside_what_was_said_in_the_order_of_both(url: str, opened: Open) -> None:
    session = opened(url)
    await session.add_items([user("one")])
    await encrypted(session).add_items([user("two")])
    await session.add_items([user("three")])
    one, two, three = await session.get_items()
    assert (one, three) == (user("one"), user("three"))
    assert two.keys() == {"__enc__", "v", "kid", "payload"}
    assert await encrypted(session).get_items() == [user("two")]


@pytest.mark.parametrize(
    "change",
    [{"payload": "canary in plain words"}, {"payload": "Y2FuYXJ5"}, {"note": "canary"}, {"kid": "canary words"}],
    ids=["plain", "encoded", "more", "key-name"],
)
async def test_what_only_looks_encrypted_is_refused(change: dict[str, Any], sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    await encrypted(session).add_items([user("real")])
    (real,) = await session.get_items()
    with pytest.raises(InvalidEvent):
        await session.add_items([real | change])
    assert await session.get_items() == [real]


@pytest.mark.parametrize(
    "item",
    ["text", None, {"role": "user"}, {"role": "robot", "content": "x"}, {"role": "user", "content": 3}, {"type": 7}],
    ids=["string", "none", "no-content", "unknown-role", "number", "type-is-a-number"],
)
async def test_what_is_no_item_is_refused_whole(item: Any, sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    with pytest.raises(InvalidEvent):
        await session.add_items([user("kept only with the other"), item])
    assert await session.get_items() == []


async def test_a_closed_session_says_so(sqlite_url: str) -> None:
    session, other = ThreadkeepSession("a", sqlite_url), ThreadkeepSession("b", sqlite_url)
    await session.add_items([user("one")])
    await other.add_items([user("two")])
    await session.aclose()
    with pytest.raises(MemoryClosed):
        await session.add_items([])
    assert await other.get_items() == [user("two")]
    await other.aclose()


def test_an_unknown_way_to_treat_tool_items_is_refused(sqlite_url: str) -> None:
    with pytest.raises(InvalidSetting):
        ThreadkeepSession("a", sqlite_url, tool_items="always")  # type: ignore[arg-type]


async def test_a_runner_with_a_tool_remembers_what_was_said(sqlite_url: str, opened: Open) -> None:
    session = opened(sqlite_url)
    model = ScriptedModel(call("search", '{"q": "canaryargument"}'), said("It is sunny."), said("Warm too."))
    agent = Agent(name="guide", model=model, tools=[function_tool(_search, name_override="search")])
    await Runner.run(agent, "What is the weather?", session=session)
    await Runner.run(agent, "And tomorrow?", session=session)
    asked = [item.get("content") for item in model.asked[-1]]
    assert [content if isinstance(content, str) else content[0]["text"] for content in asked] == [
        "What is the weather?",
        "It is sunny.",
        "And tomorrow?",
    ]
    assert not [value for value in await every_value(sqlite_url) if b"canary" in value]


def _search(q: str) -> str:
    """Search."""
    return f"canaryresult for {q}"


def test_run_sync_and_other_loops_use_the_same_session(sqlite_url: str) -> None:
    session = ThreadkeepSession("loops", sqlite_url)
    for number in range(3):
        agent = Agent(name="guide", model=ScriptedModel(said(f"answer {number}")))
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            Runner.run_sync(agent, f"question {number}", session=session)
        finally:
            asyncio.set_event_loop(None)
            loop.close()
    texts = [item["content"] for item in asyncio.run(session.get_items())]
    assert texts[::2] == ["question 0", "question 1", "question 2"]
    session.close()


async def test_a_list_cut_between_call_and_result_is_mended_unless_it_is_wanted_as_it_is(
    opened: Open, sqlite_url: str
) -> None:
    session = opened(sqlite_url, "cut", tool_items="ttl")
    await session.add_items([user("weather?"), CALL, OUTPUT, assistant("Sunny.")])
    as_stored = opened(sqlite_url, "cut", tool_items="ttl", pairs=False)

    assert await session.get_items(limit=2) == [assistant("Sunny.")]
    assert await as_stored.get_items(limit=2) == [OUTPUT, assistant("Sunny.")]


async def test_a_limit_that_nothing_exceeds_leaves_nothing_out(opened: Open, sqlite_url: str) -> None:
    session = opened(sqlite_url, tool_items="ttl")
    items = [CALL, OUTPUT, user("and now?"), assistant("found")]
    await session.add_items(items[:2])
    await session.add_items(items[2:])
    assert [await session.get_items(limit) for limit in (4, 10, None)] == [items] * 3
    assert await session.get_items(2) == items[2:]


async def test_a_call_that_waits_is_no_pair_by_an_earlier_one_of_its_name(opened: Open, sqlite_url: str) -> None:
    """Some models count their calls anew in every turn."""
    session = opened(sqlite_url, tool_items="ttl")
    turn = [user("first"), CALL, OUTPUT, assistant("one")]
    await session.add_items([*turn, user("second"), CALL])
    assert await session.get_items() == [*turn, user("second")]
    await session.add_items([OUTPUT, assistant("two")])
    assert await session.get_items() == [*turn, user("second"), CALL, OUTPUT, assistant("two")]
    assert await session.get_items(2) == [assistant("two")], "a result whose call was cut off is none of another call's"


async def test_a_result_is_that_of_the_call_right_before_it_not_of_one_that_never_got_any(
    opened: Open, sqlite_url: str
) -> None:
    session = opened(sqlite_url, tool_items="ttl")
    given_up = {**CALL, "arguments": '{"city": "Warsaw"}'}
    await session.add_items([user("first"), given_up, user("second"), CALL, OUTPUT, assistant("two")])
    assert await session.get_items() == [user("first"), user("second"), CALL, OUTPUT, assistant("two")]


async def test_a_closed_session_says_so_as_the_sdks_own_does(opened: Open, sqlite_url: str) -> None:
    session = opened(sqlite_url)
    await session.aclose()

    with pytest.raises(RuntimeError, match=r"^ThreadkeepSession is closed$"):
        await session.add_items([])
