"""What a put takes late in a talk is what it took early: counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.db import pool

EARLY, LATE = 20, 200
# What a plain put sends: the row, the items and the counts together where the server takes that.
TRIPS = {"postgres": 1, "mariadb": 1}


class Talk:
    """A thread that grows by a question and an answer, each in a put of its own, as a graph puts them."""

    def __init__(self, saver: Verbs, name: str) -> None:
        self.saver = saver
        self.config: dict[str, Any] = thread(name)
        self.messages: list[BaseMessage] = []

    async def turn(self) -> None:
        number = len(self.messages)
        await self.add(HumanMessage(f"question {number} " * 20, id=f"q{number}"))
        await self.add(AIMessage(f"answer {number} " * 60, id=f"a{number}", response_metadata={"model": "m", "n": 1}))

    async def add(self, message: BaseMessage) -> None:
        self.messages = [*self.messages, message]
        self.config = await self.saver.put(self.config, {"messages": self.messages})


@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_a_late_put_encodes_and_decodes_no_more_values_than_an_early_one(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for verb in ("dumps_typed", "loads_typed"):
        monkeypatch.setattr(JsonPlusSerializer, verb, counted(calls, getattr(JsonPlusSerializer, verb)))
    talk = Talk(await open_saver(), "t")
    taken: dict[int, int] = {}
    for number in range(1, LATE + 1):
        await talk.turn()
        if number in (EARLY, LATE):
            talk.messages = (await talk.saver.values(talk.config))["messages"]  # as the next turn has them
            calls.clear()
            await talk.add(HumanMessage("once more", id=f"more{number}"))
            taken[number] = len(calls)
    assert 0 < taken[LATE] <= taken[EARLY]


def counted(calls: list[str], call: Any) -> Any:
    def counting(*args: Any) -> Any:
        calls.append(call.__name__)
        return call(*args)

    return counting


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize("url", [*TRIPS], indirect=True)
async def test_a_put_is_one_trip_to_the_server(open_saver: Open, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[str] = []
    for kind in (pool._PostgresConnection, pool._MySqlConnection):
        for verb in ("rows", "count", "begin", "commit"):
            monkeypatch.setattr(kind, verb, noted(trips, verb, getattr(kind, verb)))
    talk = Talk(await open_saver(), "t")
    for _ in range(3):
        await talk.turn()
    trips.clear()
    await talk.turn()
    assert len(trips) == 2 * TRIPS["postgres" if url.startswith("postgres") else "mariadb"], trips


def noted(trips: list[str], verb: str, call: Any) -> Any:
    async def noting(*args: Any) -> Any:
        trips.append(verb)
        return await call(*args)

    return noting
