"""An agent that is killed inside a tool, again and again, for `test_langgraph_killed`.

    python -m tests.adapters.mortal URL USER TRAFFIC

It imports everything once, then forks a life for every line it reads, on one of a few threads. A life goes on with the
turn in which the one before it on that thread died, has a turn that ends well, and begins one more: in its tool it says
so and waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from tests.adapters.agent import agent, confirm, unpaired
from tests.adapters.verbs import thread
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.settings import Settings

THREADS = 5


class Mortal:
    def __init__(self, url: str, user: str, traffic: Any) -> None:
        self._options: dict[str, Any] = {"user": user, "tool_traffic": traffic, "settings": Settings()}
        self._url = url
        self._dying = False
        self._config: dict[str, Any] = {}

    async def live(self, number: int) -> None:
        self._config = thread(f"t{number % THREADS}")
        async with ThreadkeepSaver.from_url(self._url, **self._options) as saver:
            graph = saver.attached(agent(saver, (self._look(), confirm)))
            if number >= THREADS:
                resumed = await graph.ainvoke(None, self._config, durability="sync")
                _require(unpaired(resumed["messages"]) == [], "the pair was not completed")
                _require(resumed["messages"][-1].content == "Done after 1 result(s).", "the turn did not end")
            await (self._ask if number % 3 == 1 else self._look_up)(graph, number)
            if number % 7 == 6:
                await self._go_back(graph)
            self._dying = True
            await graph.ainvoke(_said(f"use 1 look: the last of life {number}"), self._config, durability="sync")

    def _look(self) -> Any:
        def look(what: str) -> str:
            """Look something up."""
            if self._dying:
                print(json.dumps({"in_tool": what}), flush=True)
                threading.Event().wait()
            return f"result-of-{what}"

        return look

    async def _look_up(self, graph: Any, number: int) -> None:
        done = await graph.ainvoke(_said(f"use 2 look: in life {number}"), self._config, durability="sync")
        _require(unpaired(done["messages"]) == [], "a plain turn left an unpaired call")

    async def _ask(self, graph: Any, number: int) -> None:
        waiting = await graph.ainvoke(_said(f"use 1 confirm: in life {number}"), self._config, durability="sync")
        _require(bool(waiting["__interrupt__"]), "it did not ask")
        done = await graph.ainvoke(Command(resume="yes"), self._config, durability="sync")
        _require(done["messages"][-2].content.endswith(" was yes"), "it did not hear the answer")

    async def _go_back(self, graph: Any) -> None:
        """To an earlier end of a turn, and from there once more: the thread goes on as a fork with as many turns."""
        history = [state async for state in graph.aget_state_history(self._config, limit=25)]
        now = history[0].values["messages"]
        ends = [state for state in history[1:] if not state.next and state.values.get("messages")]
        earlier = next(state for state in ends if len(state.values["messages"]) < len(now))
        done = await graph.ainvoke(_said("use 2 look: once more"), earlier.config, durability="sync")
        _require(unpaired(done["messages"]) == [], "a fork left an unpaired call")


def _said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def _require(true: bool, problem: str) -> None:
    if not true:
        print(json.dumps({"problem": problem}), flush=True)
        os._exit(3)


def main(url: str, user: str, traffic: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number, _ in enumerate(sys.stdin):
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(Mortal(url, user, traffic).live(number))
            except BaseException as error:
                print(json.dumps({"problem": repr(error)}), flush=True)
            os._exit(4)
        print(json.dumps({"life": pid}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
