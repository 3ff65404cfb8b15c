"""Talks in a real graph for each saver, young ones and an old one; every call to the saver is timed.

All that is compared is measured in turns, a call after the other's: what slows one down for a moment slows the others
down as well.
"""

from __future__ import annotations

import functools
import gc
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, MessagesState, StateGraph

from bench.checkpoints_savers import Contestant, Saver
from bench.sessions_texts import Turn, turns

VERBS = ("put", "put_writes", "get_tuple")
STAGES = ("early", "late")


@dataclass(frozen=True)
class Plan:
    turns: int = 200
    early: int = 20
    young: int = 3  # talks, one after the other, that are timed when they are as long as `early` says
    timed_turns: int = 12  # of each of them; of the old talk as many as of all of them
    reads: int = 15
    cold_reads: int = 4
    alone: int = 30
    listed: int = 10

    def length(self, stage: str) -> int:
        """Of the talks, in turns, when all that is timed has been said."""
        if stage == "early":
            return self.early + self.timed_turns
        return self.turns + self.young * self.timed_turns


@dataclass
class Samples:
    """Of one saver; milliseconds. `bytes` of the old talk's database after each of some turns."""

    calls: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # verb → stage → times
    bytes: dict[int, int] = field(default_factory=dict)
    on_disk: int = 0


@dataclass
class Lane:
    """A saver in a graph, with the two talks it has been given: the old one, and the latest of the young ones."""

    contestant: Contestant
    saver: Saver
    samples: Samples
    talks: dict[str, Iterator[Turn]] = field(default_factory=dict[str, "Iterator[Turn]"])
    threads: dict[str, str] = field(default_factory=dict[str, str])
    graph: Any = None
    stage: str | None = None
    answer: str = ""
    puts: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: {stage: [] for stage in STAGES})
    """What LangGraph gave it, of the last turn. To let go of an old state takes time, so it is done between turns."""

    def begin(self, stage: str, number: int = 0) -> None:
        self.talks[stage], self.threads[stage] = turns(), f"{stage}{number}"

    def config(self, stage: str) -> dict[str, Any]:
        return config_of(self.threads[stage])

    async def turn(self, stage: str) -> None:
        (_, said), (_, self.answer) = next(self.talks[stage])
        await self.graph.ainvoke({"messages": [HumanMessage(said)]}, self.config(stage), durability="sync")

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        del self.puts[stage][:-1]
        with no_collection():
            self.stage = stage
            yield
            self.stage = None

    def note(self, verb: str, milliseconds: float) -> None:
        if self.stage is not None:
            self.record(verb, self.stage, milliseconds)

    def record(self, verb: str, stage: str, milliseconds: float) -> None:
        self.samples.calls.setdefault(verb, {}).setdefault(stage, []).append(milliseconds)


def config_of(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


async def measured(contestants: Sequence[Contestant], plan: Plan) -> dict[str, Samples]:
    async with AsyncExitStack() as stack:
        lanes = [await _lane(stack, one) for one in contestants]
        for lane in lanes:
            lane.begin("late")
            await _grow_old(lane, plan)
        for number in range(plan.young * plan.timed_turns):
            if number % plan.timed_turns == 0:
                for lane in lanes:
                    lane.begin("early", number)
                    await _grow_young(lane, plan)
            for lane, stage in _shuffled(lanes, number):
                with lane.timed(stage):
                    await lane.turn(stage)
        for number in range(plan.reads):
            for lane, stage in _shuffled(lanes, number):
                await _read(lane, stage, plan)
        for number in range(plan.cold_reads):
            for lane, stage in _shuffled(lanes, number):
                await _read_cold(lane, stage)
        for lane in lanes:
            await _check(lane, plan)
        for number in range(plan.alone):
            for lane, stage in _shuffled(lanes, number):
                await _alone(lane, stage)
        return {lane.contestant.name: lane.samples for lane in lanes}


async def _lane(stack: AsyncExitStack, contestant: Contestant) -> Lane:
    saver = await stack.enter_async_context(contestant.open())
    lane = Lane(contestant, saver, Samples())
    for verb in VERBS:
        setattr(saver, f"a{verb}", _timed(lane, verb, getattr(saver, f"a{verb}")))
    lane.graph = _graph(lane)
    return lane


def _timed(lane: Lane, verb: str, call: Any) -> Any:
    @functools.wraps(call)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        if verb == "put" and lane.stage is not None:
            lane.puts[lane.stage].append(args)
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


async def _grow_old(lane: Lane, plan: Plan) -> None:
    """Alone in its tables, so that they tell what it takes."""
    for number in range(1, plan.turns + 1):
        await lane.turn("late")
        if number in (plan.early - 1, plan.early, 49, 50, plan.turns - 1, plan.turns):
            lane.samples.bytes[number] = await lane.contestant.stored()
    lane.samples.on_disk = await lane.contestant.on_disk()


async def _grow_young(lane: Lane, plan: Plan) -> None:
    for _ in range(plan.early):
        await lane.turn("early")


async def _alone(lane: Lane, stage: str) -> None:
    """The last put once more, as the next step would have it, and writes to it, with nothing else going on.

    In the graph both overlap with LangGraph's own work, which grows with the talk.
    """
    config, checkpoint, metadata, _ = lane.puts[stage][-1]
    answer = AIMessage(next(lane.talks[stage])[1][1])
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    version = lane.saver.get_next_version(versions["messages"], None)
    following = {
        **checkpoint,
        "id": str(uuid6(clock_seq=-2)),
        "channel_values": {**values, "messages": [*values["messages"], answer]},
        "channel_versions": {**versions, "messages": version},
    }
    config = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}
    with no_collection():
        start = time.perf_counter()
        stored = await lane.saver.aput(config, following, metadata, {"messages": version})
        between = time.perf_counter()
        await lane.saver.aput_writes(stored, [("messages", [answer])], str(uuid4()), "~__pregel_pull, model")
        end = time.perf_counter()
    lane.record("put alone", stage, (between - start) * 1_000)
    lane.record("put_writes alone", stage, (end - between) * 1_000)
    lane.puts[stage].append((config, following, metadata, {}))


async def _read(lane: Lane, stage: str, plan: Plan) -> None:
    """The latest state, then the newest few, as the process that serves the talk reads them."""
    with lane.timed(stage):
        await lane.saver.aget_tuple(lane.config(stage))
        start = time.perf_counter()
        found = [one async for one in lane.saver.alist(lane.config(stage), limit=plan.listed)]
        lane.note("list", (time.perf_counter() - start) * 1_000)
    assert len(found) == plan.listed


async def _read_cold(lane: Lane, stage: str) -> None:
    """The first reading of a saver that was just opened: connected, nothing cached."""
    async with lane.contestant.open() as fresh:
        await fresh.aget_tuple(config_of("nobody"))
        with lane.timed(stage):
            start = time.perf_counter()
            await fresh.aget_tuple(lane.config(stage))
            lane.note("get_tuple, cold", (time.perf_counter() - start) * 1_000)


async def _check(lane: Lane, plan: Plan) -> None:
    for stage in STAGES:
        state = await lane.saver.aget_tuple(lane.config(stage))
        expected = [text for _, turn in zip(range(plan.length(stage)), turns(), strict=False) for _, text in turn]
        kept = [message.content for message in state.checkpoint["channel_values"]["messages"]] if state else []
        if kept != expected:
            raise RuntimeError(f"{lane.contestant.name} did not return the talk it was given")


def _shuffled(lanes: Sequence[Lane], seed: int) -> list[tuple[Lane, str]]:
    every = [(lane, stage) for lane in lanes for stage in STAGES]
    return random.Random(seed).sample(every, len(every))


@contextmanager
def no_collection() -> Iterator[None]:
    """One saver's garbage must not be collected on another's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
