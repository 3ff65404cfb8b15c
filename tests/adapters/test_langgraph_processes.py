"""Several writers on one thread: nothing that was stored is lost, and who asks is told of a fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.adapters.database import rows
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.errors import InvalidSetting, ScopeErased, StaleWriter

ROOT = Path(__file__).parents[2]
PUTS = 40
_MOST_TURNS = 200  # until a deletion has met one of them halfway


def writer(stack: ExitStack, url: str, user: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.adapters.writer", url, user, name, str(PUTS)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_two_processes_on_one_thread_lose_no_checkpoint(saver: Verbs, url: str, user: str) -> None:
    with ExitStack() as stack:
        processes = [writer(stack, url, user, name) for name in ("one", "two")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        said = [(await asyncio.gather(*(asyncio.to_thread(process.communicate, "\n") for process in processes)))]
        assert [process.returncode for process in processes] == [0, 0]
    promised = {line.split()[0]: int(line.split()[1]) for out, _ in said[0] for line in out.splitlines()}
    assert len(promised) == 2 * PUTS
    found = {one.checkpoint["id"]: one for one in await saver.list(thread("t"))}
    assert found.keys() == promised.keys()
    for id_, one in found.items():
        values = one.checkpoint["channel_values"]["said"]
        assert len(values) == promised[id_]
        assert [len(write) for write in one.pending_writes or ()] == [3]
        if one.parent_config is not None:
            parent = found[one.parent_config["configurable"]["checkpoint_id"]]
            assert values[:-1] == parent.checkpoint["channel_values"]["said"]


async def test_a_stale_writer_is_told_every_time(open_saver: Open, mode: str) -> None:
    one, other = await open_saver(stale_writers="report"), await open_saver(stale_writers="report")
    told = 0
    for number in range(100):
        latest = [await saver.get(thread("t")) for saver in (one, other)]
        configs = [thread("t") if found is None else found.config for found in latest]
        puts = [saver.put(config, {"n": number}) for saver, config in zip((one, other), configs, strict=True)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        told += sum(isinstance(outcome, StaleWriter) for outcome in outcomes)
        assert sum(isinstance(outcome, dict) for outcome in outcomes) == 1
    assert told == 100
    found = await one.list(thread("t"))
    assert [one.checkpoint["channel_values"]["n"] for one in found] == [*reversed(range(100))]


async def test_going_back_on_purpose_is_not_stale(open_saver: Open) -> None:
    saver = await open_saver(stale_writers="report")
    first = await saver.put(thread("t"), {"n": 1})
    await saver.get(thread("t"))
    await saver.put(first, {"n": 2})
    named = await saver.get(first)
    assert named is not None
    fork = await saver.put(named.config, {"n": 3})
    assert await saver.values(fork) == {"n": 3}
    await saver.get(thread("t"))
    with pytest.raises(StaleWriter, match="thread 't'"):
        await saver.put(first, {"n": 4})


async def test_without_the_option_a_fork_is_kept(open_saver: Open) -> None:
    saver = await open_saver()
    first = await saver.put(thread("t"), {"n": 1})
    for n in (2, 3):
        await saver.put(first, {"n": n})
    assert len(await saver.list(thread("t"))) == 3


async def test_an_unknown_choice_is_refused(open_saver: Open) -> None:
    with pytest.raises(InvalidSetting, match="stale_writers"):
        await open_saver(stale_writers="ignore")


def chat(saver: Any, pause: asyncio.Event | None = None) -> Any:
    async def model(state: MessagesState) -> dict[str, Any]:
        if pause is not None:
            await pause.wait()
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    return graph.compile(checkpointer=saver)


async def test_of_two_runs_on_one_thread_the_second_is_told(open_saver: Open) -> None:
    saver = await open_saver(stale_writers="report")
    await chat(saver.saver).ainvoke({"messages": [HumanMessage("first")]}, thread("t"), durability="sync")
    go = asyncio.Event()
    slow = chat(saver.saver, go).ainvoke({"messages": [HumanMessage("slow")]}, thread("t"), durability="sync")
    run = asyncio.create_task(slow)
    while len(await saver.list(thread("t"))) < 5:  # it has begun: its input and its first step are stored
        await asyncio.sleep(0)
    fast = await chat(saver.saver).ainvoke({"messages": [HumanMessage("fast")]}, thread("t"), durability="sync")
    go.set()
    with pytest.raises(StaleWriter):
        await run
    assert [message.content for message in fast["messages"]][-2:] == ["fast", "answer 4"]


async def test_time_travel_and_updates_of_the_state_go_on_with_the_option(open_saver: Open) -> None:
    saver = await open_saver(stale_writers="report")
    graph = chat(saver.saver)
    for text in ("one", "two"):
        await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, thread("t"))
    history = [state async for state in graph.aget_state_history(thread("t"))]
    early = next(state for state in history if state.next == ("model",) and len(state.values["messages"]) == 1)
    replayed = await graph.ainvoke(None, early.config)
    assert [message.content for message in replayed["messages"]] == ["one", "answer 1"]
    await graph.aupdate_state(early.config, {"messages": [HumanMessage("changed", id="one")]})
    changed = await graph.ainvoke(None, thread("t"))
    assert [message.content for message in changed["messages"]] == ["changed", "answer 1"]
    await graph.aupdate_state(thread("t"), {"messages": [HumanMessage("appended")]})
    assert len((await graph.aget_state(thread("t"))).values["messages"]) == 3


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize("disturb", ["delete_thread", "prune"])
async def test_runs_go_on_beside_deletions_and_pruning_and_every_checkpoint_can_be_read(
    open_saver: Open, url: str, user: str, disturb: str
) -> None:
    """What a deletion meets halfway is refused whole, and what was stored is whole."""
    runs, other = [await open_saver(), await open_saver()], await open_saver()
    refused: list[BaseException] = []
    done = asyncio.Event()

    async def run(saver: Verbs, name: str) -> None:
        for turn in range(_MOST_TURNS):
            if turn >= 8 and (refused or disturb == "prune"):
                break
            config, said = thread("t"), list[Any]()
            try:
                for number in range(5):
                    said = [*said, HumanMessage(f"{name} {turn} {number} " + "x" * 200, id=f"{name}-{turn}-{number}")]
                    config = await saver.put(config, {"said": said})
                    await saver.call("put_writes", config, [("said", [number])], f"{name}-{number}")
            except ScopeErased as error:
                refused.append(error)

    async def disturbing() -> None:
        while not done.is_set():
            await (other.call("prune", ["t"]) if disturb == "prune" else other.call("delete_thread", "t"))

    disturber = asyncio.create_task(disturbing())
    await asyncio.gather(*(run(saver, f"r{number}") for number, saver in enumerate(runs)))
    done.set()
    await disturber
    assert refused or disturb == "prune"
    reader = await open_saver()
    for found in await reader.list(thread("t")):
        said = [message.id for message in found.checkpoint["channel_values"]["said"]]
        first = str(said[0]).rsplit("-", 1)[0]
        assert said == [f"{first}-{number}" for number in range(len(said))]
    await reader.call("delete_thread", "t")
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    assert await rows(url, keys) == []
