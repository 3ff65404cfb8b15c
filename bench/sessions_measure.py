"""One round: every contestant on a new place, taking turns in short blocks: a noisy moment is noisy for all of them."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field

from bench.sessions_peers import Contestant
from bench.sessions_stores import Store
from bench.sessions_texts import Message, Turn, turns

TALK = "talk"  # the conversation that grows
SINGLES = "singles"  # the one that takes a message at a time
_BLOCK = 10  # calls of one contestant before the next has its turn


@dataclass(frozen=True, slots=True)
class Plan:
    lengths: tuple[int, ...] = (10, 100, 1_000, 10_000)
    window: int = 20
    reads: int = 50
    singles: int = 100
    tasks: int = 8
    turns_per_task: int = 25

    def appends_at(self, length: int) -> int:
        """Few enough that the conversation stays about as long as the label says."""
        return max(5, min(150, length // 4))


@dataclass(slots=True)
class Samples:
    """Of one contestant in one round; milliseconds, by length."""

    append: dict[int, list[float]] = field(default_factory=dict)
    read: dict[int, list[float]] = field(default_factory=dict)
    size: dict[int, tuple[int, int]] = field(default_factory=dict)  # bytes at rest, messages
    single: list[float] = field(default_factory=list)
    concurrent: list[float] = field(default_factory=list)
    concurrent_per_second: float = 0.0
    durability: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Lane:
    """A contestant with its place, and the talk it has been given so far."""

    contestant: Contestant
    place: str
    talk: Iterator[Turn] = field(default_factory=turns)
    newest: list[str] = field(default_factory=list)
    messages: int = 0
    samples: Samples = field(default_factory=Samples)

    async def append_turn(self) -> None:
        turn = next(self.talk)
        await self.contestant.append(TALK, turn)
        self._note(turn)

    async def timed_turns(self, count: int) -> list[float]:
        """One behind the other, as a service calls its store; what is said is made up before the clock runs."""
        said = list(itertools.islice(self.talk, count))
        spent = [await timed(lambda turn=turn: self.contestant.append(TALK, turn)) for turn in said]
        for turn in said:
            self._note(turn)
        return spent

    async def timed_reads(self, count: int, window: int) -> list[float]:
        return [await timed(lambda: self.contestant.window(TALK, window)) for _ in range(count)]

    def _note(self, turn: Turn) -> None:
        self.messages += len(turn)
        self.newest = [*self.newest, *(text for _, text in turn)][-100:]

    def goes_to(self, length: int) -> bool:
        return self.contestant.most_messages is None or length <= self.contestant.most_messages


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1_000


async def run_round(contestants: Sequence[Contestant], plan: Plan, store: Store) -> list[Samples]:
    async with AsyncExitStack() as stack:
        lanes = [Lane(one, store.place(number)) for number, one in enumerate(contestants)]
        for lane in lanes:
            await lane.contestant.open(lane.place)
            stack.push_async_callback(lane.contestant.close)
        for length in plan.lengths:
            await _at_length([lane for lane in lanes if lane.goes_to(length)], length, plan, store)
        await _singles(lanes, plan)
        for lane in lanes:
            await _concurrently(lane, plan)
            lane.samples.durability = store.durability(lane.place) or await lane.contestant.durability()
        return [lane.samples for lane in lanes]


async def _at_length(lanes: list[Lane], length: int, plan: Plan, store: Store) -> None:
    for lane in lanes:
        while lane.messages < length:
            await lane.append_turn()
        lane.samples.size[length] = (store.size(lane.place), lane.messages)
        lane.samples.append[length] = []
        lane.samples.read[length] = []
    with no_collection():
        for number, count in enumerate(_blocks(plan.appends_at(length))):
            for lane in _shuffled(lanes, number):
                lane.samples.append[length] += await lane.timed_turns(count)
        for number, count in enumerate(_blocks(plan.reads)):
            for lane in _shuffled(lanes, number):
                lane.samples.read[length] += await lane.timed_reads(count, plan.window)
    for lane in lanes:
        await _check_window(lane, plan)


async def _check_window(lane: Lane, plan: Plan) -> None:
    found = await lane.contestant.window(TALK, plan.window)
    if found != lane.newest[-plan.window :]:
        raise RuntimeError(f"{lane.contestant.name} did not return the newest {plan.window} messages")


async def _singles(lanes: list[Lane], plan: Plan) -> None:
    """One message per append, in a conversation of its own: the unit of stores that know no turns."""
    messages: list[Message] = [message for turn in itertools.islice(turns(11), plan.singles // 2) for message in turn]
    left = iter(messages)
    with no_collection():
        for number, count in enumerate(_blocks(len(messages))):
            block = list(itertools.islice(left, count))
            for lane in _shuffled(lanes, number):
                append = lane.contestant.append
                lane.samples.single += [
                    await timed(lambda append=append, one=one: append(SINGLES, [one])) for one in block
                ]


async def _concurrently(lane: Lane, plan: Plan) -> None:
    """Several tasks at once, each in its own conversation in the one place."""

    async def one_task(number: int) -> None:
        for turn in talks[number]:
            lane.samples.concurrent.append(
                await timed(lambda turn=turn: lane.contestant.append(f"task-{number}", turn))
            )

    talks = [list(itertools.islice(turns(100 + number), plan.turns_per_task)) for number in range(plan.tasks)]
    for number in range(plan.tasks):
        await lane.contestant.append(f"task-{number}", next(turns()))
    start = time.perf_counter()
    await asyncio.gather(*(one_task(number) for number in range(plan.tasks)))
    lane.samples.concurrent_per_second = plan.tasks * plan.turns_per_task / (time.perf_counter() - start)


def _blocks(calls: int) -> Iterator[int]:
    """Short ones, so that a noisy moment is noisy for all; but in a block of one every call would be timed with the
    processor's caches full of another contestant's code, which no service has beside its own store."""
    while calls > 0:
        yield min(calls, _BLOCK)
        calls -= _BLOCK


def _shuffled(lanes: list[Lane], seed: int) -> list[Lane]:
    """Nobody always runs behind the same neighbour, whose garbage lies in the processor's caches."""
    return random.Random(seed).sample(lanes, len(lanes))


@contextmanager
def no_collection() -> Iterator[None]:
    """One contestant's garbage must not be collected on another's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
