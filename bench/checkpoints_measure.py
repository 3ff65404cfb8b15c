"""One talk in a real graph for each saver, a turn at a time in turns, every call to the saver timed."""

from __future__ import annotations

import functools
import gc
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from bench.checkpoints_savers import Contestant, Saver
from bench.sessions_texts import Turn, turns

VERBS = ("put", "put_writes", "get_tuple")


@dataclass(frozen=True)
class Plan:
    turns: int = 200
    early: int = 20
    window: int = 10  # turns whose calls count as early, or as late
    reads: int = 15
    listed: int = 10

    def stages(self) -> dict[str, range]:
        """Turns, counted from 1, whose calls are told."""
        return {
            "early": range(self.early - self.window + 1, self.early + 1),
            "late": range(self.turns - self.window + 1, self.turns + 1),
        }


@dataclass
class Samples:
    """Of one saver; milliseconds. `bytes` after each turn."""

    calls: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # verb → stage → times
    bytes: dict[int, int] = field(default_factory=dict)
    on_disk: int = 0


@dataclass
class Lane:
    contestant: Contestant
    saver: Saver
    graph: Any
    talk: Iterator[Turn]
    samples: Samples
    stage: str | None = None
    answer: str = ""

    async def turn(self) -> None:
        (_, said), (_, self.answer) = next(self.talk)
        asked = {"messages": [HumanMessage(said)]}
        await self.graph.ainvoke(asked, {"configurable": {"thread_id": "talk"}}, durability="sync")

    def note(self, verb: str, milliseconds: float) -> None:
        if self.stage is not None:
            self.samples.calls.setdefault(verb, {}).setdefault(self.stage, []).append(milliseconds)


async def measured(contestants: Sequence[Contestant], plan: Plan) -> dict[str, Samples]:
    async with AsyncExitStack() as stack:
        lanes = [await _lane(stack, one) for one in contestants]
        for number in range(1, plan.turns + 1):
            stage = next((name for name, span in plan.stages().items() if number in span), None)
            for lane in random.Random(number).sample(lanes, len(lanes)):
                lane.stage = stage
                with no_collection():
                    await lane.turn()
                lane.stage = None
            if number in (1, plan.early - 1, plan.early, 49, 50, plan.turns - 1, plan.turns):
                for lane in lanes:
                    lane.samples.bytes[number] = await lane.contestant.stored()
            if number in (plan.early, plan.turns):
                await _read(lanes, "early" if number == plan.early else "late", plan)
        for lane in lanes:
            await _check(lane, plan)
            lane.samples.on_disk = await lane.contestant.on_disk()
        return {lane.contestant.name: lane.samples for lane in lanes}


async def _lane(stack: AsyncExitStack, contestant: Contestant) -> Lane:
    saver = await stack.enter_async_context(contestant.open())
    lane = Lane(contestant, saver, None, turns(), Samples())
    for verb in VERBS:
        setattr(saver, f"a{verb}", _timed(lane, verb, getattr(saver, f"a{verb}")))
    lane.graph = _graph(lane)
    return lane


def _timed(lane: Lane, verb: str, call: Any) -> Any:
    @functools.wraps(call)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return await call(*args, **kwargs)
        finally:
            lane.note(verb, (time.perf_counter() - start) * 1_000)

    return timed


def _graph(lane: Lane) -> Any:
    async def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(lane.answer)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    return graph.compile(checkpointer=lane.saver)


async def _read(lanes: Sequence[Lane], stage: str, plan: Plan) -> None:
    """The latest state again and again; the newest few; and the first reading of a saver that was just opened."""
    config = {"configurable": {"thread_id": "talk"}}
    for number in range(plan.reads):
        for lane in random.Random(number).sample(lanes, len(lanes)):
            lane.stage = stage
            with no_collection():
                await lane.saver.aget_tuple(config)
                start = time.perf_counter()
                found = [one async for one in lane.saver.alist(config, limit=plan.listed)]
                lane.note("list", (time.perf_counter() - start) * 1_000)
                assert len(found) == plan.listed
            lane.stage = None
    for number in range(max(3, plan.reads // 3)):
        for lane in random.Random(number).sample(lanes, len(lanes)):
            async with lane.contestant.open() as fresh:
                await fresh.aget_tuple({"configurable": {"thread_id": "nobody"}})  # connected, nothing cached
                start = time.perf_counter()
                await fresh.aget_tuple(config)
                lane.stage = stage
                lane.note("get_tuple, cold", (time.perf_counter() - start) * 1_000)
                lane.stage = None


async def _check(lane: Lane, plan: Plan) -> None:
    state = await lane.saver.aget_tuple({"configurable": {"thread_id": "talk"}})
    expected = [text for _, turn in zip(range(plan.turns), turns(), strict=False) for _, text in turn]
    kept = [message.content for message in state.checkpoint["channel_values"]["messages"]] if state else []
    if kept != expected:
        raise RuntimeError(f"{lane.contestant.name} did not return the talk it was given")


@contextmanager
def no_collection() -> Iterator[None]:
    """One saver's garbage must not be collected on another's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
