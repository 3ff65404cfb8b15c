"""ADK's session service: scopes of state, what is read back, who may read it, and what is refused."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

from tests.adapters.adk.conftest import Open
from tests.adapters.adk.scripted import texts
from tests.adapters.database import every_value
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.errors import InvalidInput, InvalidScope


def said(author: str, words: str, invocation: str = "i1", **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=words)])
    return Event(author=author, invocation_id=invocation, content=content, **more)


def with_state(**state: Any) -> Event:
    return Event(author="system", actions=EventActions(state_delta=state))


async def test_a_session_is_read_back_as_it_was(service: ThreadkeepSessionService) -> None:
    session = await service.create_session(app_name="a", user_id="u", state={"k": {"deep": [1, "x"]}})
    await service.append_event(session, said("user", "what can I eat?"))
    await service.append_event(session, said("guide", "soup"))
    again = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert again == session
    assert texts(again) == ["what can I eat?", "soup"]
    assert await service.get_session(app_name="b", user_id="u", session_id=session.id) is None
    assert await service.get_session(app_name="a", user_id="U", session_id=session.id) is None


async def test_state_has_its_scopes(service: ThreadkeepSessionService) -> None:
    session = await service.create_session(
        app_name="a", user_id="u", state={"app:x": 1, "user:y": 2, "z": 3, "temp:t": 4}
    )
    await service.append_event(session, with_state(**{"app:x2": 1, "user:y2": {"n": 2}, "z2": 3, "temp:t2": 4}))
    assert session.state["temp:t2"] == 4
    stored = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert stored is not None
    assert stored.state == {"app:x": 1, "app:x2": 1, "user:y": 2, "user:y2": {"n": 2}, "z": 3, "z2": 3}
    beside = await service.create_session(app_name="a", user_id="v")
    assert beside.state == {"app:x": 1, "app:x2": 1}
    assert await service.get_user_state(app_name="a", user_id="u") == {"y": 2, "y2": {"n": 2}}
    assert await service.get_user_state(app_name="other", user_id="u") == {}
    assert await service.get_user_state(app_name="a", user_id="v") == {}


async def test_state_may_hold_what_json_cannot(sqlite_service: ThreadkeepSessionService) -> None:
    session = await sqlite_service.create_session(
        app_name="a", user_id="u", session_id="s", state={"text": b"as it is"}
    )
    await sqlite_service.append_event(session, with_state(picture=b"\x89PNG\xff", tags={"x"}))
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert stored is not None
    assert stored.state == {"text": "as it is", "picture": "iVBOR_8=", "tags": ["x"]}


async def test_sessions_are_listed_oldest_change_first(service: ThreadkeepSessionService) -> None:
    for number, user in enumerate(("u", "v", "u")):
        session = await service.create_session(app_name="a", user_id=user, session_id=f"s{number}")
        await service.append_event(session, said("user", "hello", timestamp=100.0 - number))
    mine = (await service.list_sessions(app_name="a", user_id="u")).sessions
    everyone = (await service.list_sessions(app_name="a")).sessions
    assert [one.id for one in mine] == ["s2", "s0"]
    assert [one.id for one in everyone] == ["s2", "s1", "s0"]
    assert all(one.events == [] for one in everyone)
    assert (await service.list_sessions(app_name="b")).sessions == []


async def test_as_many_recent_events_are_read_as_are_asked_for(sqlite_service: ThreadkeepSessionService) -> None:
    """Numbers that belonged to tools are empty, so older stretches are read, each behind hundreds of newer messages."""
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    searching = types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(id="1", name="f"))])
    for turn in range(250):
        invocation = f"i{turn}"
        await sqlite_service.append_event(session, said("user", f"question {turn}", invocation))
        for _ in range(6):
            call = Event(author="guide", invocation_id=invocation, content=searching)
            await sqlite_service.append_event(session, call)
        await sqlite_service.append_event(session, said("guide", f"answer {turn}", invocation))
    everything = [f"{kind} {turn}" for turn in range(250) for kind in ("question", "answer")]
    for wanted in (1, 400, 500, 2_000):
        config = GetSessionConfig(num_recent_events=wanted)
        read = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s", config=config)
        assert texts(read) == everything[-wanted:], wanted


async def test_no_event_is_missing_for_what_others_say_in_its_conversation(
    sqlite_service: ThreadkeepSessionService, sqlite_place: dict[str, Any]
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    await sqlite_service.append_event(session, said("user", "first", "i1"))
    await sqlite_service.append_event(session, said("guide", "second", "i1"))
    async with open_memory(sqlite_place["url"]) as memory:
        for start in range(0, 1_200, 400):
            notes = [UserMessage(f"a note {number}") for number in range(start, start + 400)]
            await memory.append(Scope(sqlite_place["tenant"], "u", "s"), notes)
    await sqlite_service.append_event(session, said("user", "last", "i2"))
    for config in (None, GetSessionConfig(num_recent_events=2)):
        read = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s", config=config)
        assert texts(read) == ["first", "second", "last"][-2 if config else 0 :]


async def test_scratch_state_is_seen_while_it_lasts_and_is_not_in_the_database(
    sqlite_service: ThreadkeepSessionService, sqlite_place: dict[str, Any]
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    await sqlite_service.append_event(session, with_state(**{"tool.temp.results": ["canaryscratch"]}))
    seen = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert seen is not None
    assert seen.state["tool.temp.results"] == ["canaryscratch"]
    assert not [value for value in await every_value(sqlite_place["url"]) if b"canaryscratch" in value]


async def test_personal_data_in_state_and_words_is_masked(sqlite_service: ThreadkeepSessionService) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u")
    event = said(
        "user", "I am ann.example@example.com", actions=EventActions(state_delta={"mail": "ann.example@example.com"})
    )
    await sqlite_service.append_event(session, event)
    assert texts(session) == ["I am ann.example@example.com"]  # the model sees what was said
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert stored is not None
    assert "ann.example" not in stored.model_dump_json()


async def test_events_with_equal_times_and_skewed_clocks_keep_their_order(service: ThreadkeepSessionService) -> None:
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    for number in range(30):
        await service.append_event(
            session, said("user", f"word {number}", f"i{number}", timestamp=5_000.0 - number // 10)
        )
        await service.append_event(session, said("guide", f"answer {number}", f"i{number}", timestamp=4_000.0))
    stored = await service.get_session(app_name="a", user_id="u", session_id="s")
    expected = [word for number in range(30) for word in (f"word {number}", f"answer {number}")]
    assert texts(stored) == expected
    recent = await service.get_session(
        app_name="a", user_id="u", session_id="s", config=GetSessionConfig(num_recent_events=7)
    )
    assert texts(recent) == expected[-7:]
    late = await service.get_session(
        app_name="a", user_id="u", session_id="s", config=GetSessionConfig(after_timestamp=5_000.0)
    )
    assert texts(late) == [f"word {number}" for number in range(10)]


async def test_bob_and_Bob_are_two_users(service: ThreadkeepSessionService) -> None:
    mine = await service.create_session(app_name="a", user_id="bob", session_id="s", state={"user:k": "bob's"})
    await service.append_event(mine, said("user", "only mine"))
    assert await service.get_session(app_name="a", user_id="Bob", session_id="s") is None
    his = await service.create_session(app_name="a", user_id="Bob", session_id="s")
    assert (his.events, his.state) == ([], {})
    assert [one.user_id for one in (await service.list_sessions(app_name="a", user_id="Bob")).sessions] == ["Bob"]


async def test_deleting_a_session_deletes_what_can_be_recalled_of_it(
    place: dict[str, Any], service: ThreadkeepSessionService
) -> None:
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    await service.append_event(session, said("user", "I am allergic to peanuts"))
    await service.delete_session(app_name="a", user_id="u", session_id="s")
    assert await service.get_session(app_name="a", user_id="u", session_id="s") is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("guide", "noted"))
    async with open_memory(place["url"], redis=place.get("redis")) as memory:
        assert not (await memory.recall(Scope(place["tenant"], "u"), "peanuts")).hits
    again = await service.create_session(app_name="a", user_id="u", session_id="s")
    await service.append_event(again, said("user", "a new talk", "i2"))
    stored = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(stored) == ["a new talk"]


async def test_memories_outlive_a_session_where_that_is_wanted(sqlite_place: dict[str, Any], opened: Open) -> None:
    service = opened(**sqlite_place, keep_memories=True)
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    await service.append_event(session, said("user", "I am allergic to peanuts"))
    await service.delete_session(app_name="a", user_id="u", session_id="s")
    async with open_memory(sqlite_place["url"]) as memory:
        assert (await memory.recall(Scope("shop", "u"), "peanuts")).hits


async def test_erasing_a_conversation_or_a_user_takes_its_sessions_along(
    place: dict[str, Any], service: ThreadkeepSessionService
) -> None:
    for id_ in ("s1", "s2"):
        session = await service.create_session(app_name="a", user_id="u", session_id=id_, state={"k": 1, "user:k": 2})
        await service.append_event(session, said("user", "hello"))
    async with open_memory(place["url"], redis=place.get("redis")) as memory:
        assert (await memory.erase(Scope(place["tenant"], "u", "s1"))).complete
        assert await service.get_session(app_name="a", user_id="u", session_id="s1") is None
        assert await service.get_session(app_name="a", user_id="u", session_id="s2") is not None
        assert (await memory.erase(Scope(place["tenant"], "u"))).complete
    assert (await service.list_sessions(app_name="a")).sessions == []
    assert await service.get_user_state(app_name="a", user_id="u") == {}


async def test_a_message_that_was_erased_is_no_event_any_more(
    sqlite_service: ThreadkeepSessionService, sqlite_place: dict[str, Any]
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    first = await sqlite_service.append_event(session, said("user", "forget this"))
    await sqlite_service.append_event(session, said("guide", "and keep this"))
    async with open_memory(sqlite_place["url"]) as memory:
        await memory.erase(Scope("shop", "u", "s"), message_id=first.id)
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(stored) == ["and keep this"]


async def test_an_id_is_taken_once_whichever_app_it_is_and_however_many_ask(
    place: dict[str, Any], opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    services = [opened(**place), opened(**place)]
    asked = [services[n % 2].create_session(app_name="ab"[n % 2], user_id="u", session_id="s") for n in range(6)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in answers if isinstance(one, Exception)] == [AlreadyExistsError] * 5
    (session,) = [one for one in answers if isinstance(one, Session)]
    other = "ab".replace(session.app_name, "")
    await services[0].delete_session(app_name=other, user_id="u", session_id="s")  # not that app's to delete
    assert await services[1].get_session(app_name=session.app_name, user_id="u", session_id="s") is not None
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_bad_input_is_refused_and_nothing_is_written(sqlite_service: ThreadkeepSessionService) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    for bad in (said("user", "x", timestamp=float("nan")), said("user", "long " * 1_000_000), "no event"):
        with pytest.raises(InvalidInput):
            await sqlite_service.append_event(session, bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidScope):
        await sqlite_service.create_session(app_name="a", user_id="")
    assert session.events == []
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert stored is not None
    assert stored.events == []


async def test_an_event_without_content_and_one_with_an_unknown_part_are_no_trouble(
    sqlite_service: ThreadkeepSessionService,
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    await sqlite_service.append_event(session, Event(author="user"))
    odd = Event(author="guide", invocation_id="i1", content=types.Content(role="model", parts=[types.Part()]))
    await sqlite_service.append_event(session, odd)
    await sqlite_service.append_event(session, said("guide", "done"))
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(stored) == ["done"]


async def test_the_same_event_again_is_refused_as_stale_or_stored_once(
    sqlite_service: ThreadkeepSessionService,
) -> None:
    session = await sqlite_service.create_session(app_name="a", user_id="u", session_id="s")
    held = session.model_copy(deep=True)
    event = said("user", "once")
    await sqlite_service.append_event(session, event)
    with pytest.raises(ValueError, match="modified in storage"):
        await sqlite_service.append_event(held, event)
    stored = await sqlite_service.get_session(app_name="a", user_id="u", session_id="s")
    assert texts(stored) == ["once"]


async def test_an_event_that_is_tried_again_changes_nothing_and_another_with_its_id_is_kept(
    service: ThreadkeepSessionService,
) -> None:
    session = await service.create_session(app_name="a", user_id="u", session_id="s")
    event = said("user", "once", actions=EventActions(state_delta={"k": 1}))
    for again in (event, event, event.model_copy(deep=True)):
        await service.append_event(session, again)
    other = with_state(k=2).model_copy(update={"id": event.id, "invocation_id": "i1"})
    await service.append_event(session, other)
    stored = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert stored is not None
    assert (texts(stored), stored.state, len(stored.events)) == (["once"], {"k": 2}, 2)
    assert texts(session) == ["once"]
