"""A long list is looked over while the server stores it; what was changed in place is stored as it is by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from tests.adapters.verbs import Open, Verbs, thread, verbs_of
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.adapters.langgraph.meanwhile import Look, Meanwhile
from threadkeep.adapters.langgraph.whole_lists import ListSnapshot
from threadkeep.settings import Settings
from threadkeep.sql import lines

LENGTH = 120
only_async = pytest.mark.parametrize("mode", ["async"], indirect=True)
on_servers = pytest.mark.parametrize("url", ["postgres", "mariadb"], indirect=True)


def message(number: int) -> BaseMessage:
    if number % 2:
        return AIMessage(f"answer {number}", id=str(number), response_metadata={"model": {"name": "m"}})
    return HumanMessage(f"question {number}", id=str(number))


async def talk_of(saver: Verbs, durability: str) -> tuple[dict[str, Any], list[BaseMessage]]:
    """A thread whose list was put twice and read once, as a graph does it."""
    config = as_graph(thread("t"), durability)
    messages = [message(number) for number in range(LENGTH)]
    for more in (messages[:-1], messages):
        config = as_graph(await saver.put(config, {"messages": more}), durability)
    return config, (await saver.values(config))["messages"]


def as_graph(config: dict[str, Any], durability: str) -> dict[str, Any]:
    return {"configurable": {**config["configurable"], "__pregel_durability": durability}}


def reworded(messages: list[BaseMessage]) -> None:
    messages[3].content = "changed in place"


def changed_in_its_depths(messages: list[BaseMessage]) -> None:
    messages[3].response_metadata["model"]["name"] = "another"


def given_a_field_of_its_own(messages: list[BaseMessage]) -> None:
    messages[3].mark = "mine"  # type: ignore[attr-defined]


def exchanged(messages: list[BaseMessage]) -> None:
    messages[3] = AIMessage("another one", id="3")


CHANGES = [reworded, changed_in_its_depths, given_a_field_of_its_own, exchanged]


@only_async
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("change", CHANGES)
async def test_what_was_changed_in_place_is_stored_as_it_is(
    open_saver: Open, durability: str, change: Callable[[list[BaseMessage]], None]
) -> None:
    saver = await open_saver()
    before, messages = await talk_of(saver, durability)
    change(messages)
    after = await saver.put(before, {"messages": [*messages, message(LENGTH)]})
    later = await saver.put(after, {"messages": [*messages, message(LENGTH), message(LENGTH + 1)]})
    elsewhere = await open_saver()
    assert (await elsewhere.values(after))["messages"] == [*messages, message(LENGTH)]
    assert (await elsewhere.values(later))["messages"] == [*messages, message(LENGTH), message(LENGTH + 1)]
    assert (await elsewhere.values(before))["messages"] == [message(number) for number in range(LENGTH)]


@only_async
@on_servers
@pytest.mark.parametrize("length", [20, LENGTH])
async def test_only_a_long_list_is_looked_over_while_the_server_is_at_work(
    url: str, user: str, mode: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [message(number) for number in range(length)]
    order: list[str] = []
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as opened:
        saver = verbs_of(opened, mode)
        config = await saver.put(thread("t"), {"messages": messages[:-1]})
        config = await saver.put(config, {"messages": messages})
        noted(monkeypatch, ListSnapshot, "common_with", lambda: order.append("looked"))
        for kind in (lines._PostgresLine, lines._MySqlLine):
            for verb in ("rows", "count", "begin"):
                noted(monkeypatch, kind, verb, lambda: order.append("sent"))
        await saver.put(config, {"messages": [*messages, message(length)]})
    assert order[:2] == (["sent", "looked"] if length == LENGTH else ["looked", "sent"])


def noted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, note: Callable[[], None]) -> None:
    call = getattr(owner, name)

    def noting(*args: Any) -> Any:
        note()
        return call(*args)

    monkeypatch.setattr(owner, name, noting)


async def awaited(call: Meanwhile[Any]) -> Any:
    return await call


async def test_a_look_is_taken_once_as_soon_as_the_call_waits() -> None:
    taken: list[str] = []
    answer = asyncio.get_running_loop().create_future()

    async def call() -> str:
        taken.append("asked")
        return await answer

    look = Look(lambda: taken.append("looked") is None)
    waiting = asyncio.ensure_future(awaited(Meanwhile(call(), look)))
    await asyncio.sleep(0)
    assert taken == ["asked", "looked"]
    answer.set_result("answer")
    assert await waiting == "answer"
    assert look.found()
    assert taken == ["asked", "looked"]


async def test_a_call_that_is_cancelled_while_it_waits_can_clean_up() -> None:
    ended: list[str] = []

    async def call() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    waiting = asyncio.ensure_future(awaited(Meanwhile(call(), Look(lambda: True), steps=2)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["cleaned up"]
