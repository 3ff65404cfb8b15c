"""`tool_traffic="turn"`: calls and results live until the turn ends, encrypted; then only what was said stays."""

from __future__ import annotations

import asyncio
import base64
import operator
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from tests.adapters.agent import agent, unpaired
from tests.adapters.database import count, every_value, rows
from tests.adapters.test_langgraph_storage import stored_bytes
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep import Scope
from threadkeep.adapters.langgraph.turns import Projection
from threadkeep.compose.memory import admission_rules
from threadkeep.errors import CapabilityMissing, CheckpointCorrupt, Conflict, InvalidInput, InvalidSetting, StaleWriter
from threadkeep.ports.threads import TurnRemains
from threadkeep.settings import Settings

THREADS, TURNS = 5, 20
CANARIES = 5  # of a call, and of its result
LOOKS_LIKE_A_CANARY = re.compile(rb"(?:arg|res)[0-9a-f]{32}")
SLOT_KEY = base64.b64encode(b"k" * 32).decode()
only_async = pytest.mark.parametrize("mode", ["async"], indirect=True)


def answering(results: list[str]) -> Any:
    def look(what: str) -> str:
        """Look something up."""
        results.extend(f"res{uuid4().hex}" for _ in range(CANARIES))
        return f"{' '.join(results[-CANARIES:])} of {what}"

    return look


async def invoke(graph: Any, given: Any, mode: str, config: dict[str, Any]) -> Any:
    return await graph.ainvoke(given, config) if mode == "async" else graph.invoke(given, config)


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


async def in_flight(url: str, user: str) -> int:
    return await count(url, "tk_turn_keys", user)


@only_async
async def test_no_tool_canary_is_left_when_the_turns_have_ended(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver(tool_traffic="turn")
    made: list[str] = []
    results: list[str] = []
    graph = saver.saver.attached(agent(saver.saver, (answering(results),), made=made, width=CANARIES))
    for turn in range(THREADS * TURNS):
        state = await graph.ainvoke(said(f"use 1 look: number {turn}"), thread(f"t{turn % THREADS}"))
        assert results[-1] in state["messages"][-2].content
    canaries = {one.encode() for one in (*made, *results)}
    assert len(canaries) == 1_000
    assert all(map(LOOKS_LIKE_A_CANARY.fullmatch, canaries))
    # In one pass: a shared server holds what other tests left there, and a thousand searches of that take minutes.
    for value in await every_value(url):
        assert canaries.isdisjoint(LOOKS_LIKE_A_CANARY.findall(value))
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        data = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
        assert canaries.isdisjoint(LOOKS_LIKE_A_CANARY.findall(data))
    for number in range(THREADS):
        kept = (await saver.values(thread(f"t{number}")))["messages"]
        assert [type(one) for one in kept] == [HumanMessage, AIMessage, AIMessage] * TURNS
        assert kept[-1].content == "Done after 1 result(s)."
        assert not any(getattr(one, "tool_calls", None) for one in kept)
        assert len(await saver.list(thread(f"t{number}"))) == TURNS
    assert await in_flight(url, user) == 0
    assert await count(url, "tk_checkpoint_writes", user) == 0


async def test_nothing_of_a_turn_can_be_read_while_it_is_in_flight(saver_in_turns: Verbs, url: str, mode: str) -> None:
    made: list[str] = []
    graph = saver_in_turns.saver.attached(agent(saver_in_turns.saver, made=made))
    given = said("use 1 confirm: and my card is 4111 1111 1111 1111")
    waiting = await invoke(graph, given, mode, thread("t"))
    assert waiting["__interrupt__"]
    values = b"\n".join(await every_value(url))
    assert made[0].encode() not in values
    assert b"4111 1111 1111" not in values
    assert (await saver_in_turns.values(thread("t")))["messages"][-1].tool_calls
    assert await saver_in_turns.call("end_turn", thread("t")) is False
    done = await invoke(graph, Command(resume="yes"), mode, thread("t"))
    assert done["messages"][-2].content == f"{made[0]} was yes"
    kept = (await saver_in_turns.values(thread("t")))["messages"]
    assert [one.content for one in kept][1:] == ["Looking up 0.", "Done after 1 result(s)."]
    assert kept[0].content == "use 1 confirm: and my card is [REDACTED:CREDIT_CARD]"
    assert await saver_in_turns.call("end_turn", thread("t")) is True


@pytest.fixture
async def saver_in_turns(open_saver: Open) -> Verbs:
    return await open_saver(tool_traffic="turn")


@only_async
async def test_a_turn_that_waits_is_resumed_by_another_process(open_saver: Open, url: str, user: str) -> None:
    one, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    await one.saver.attached(agent(one.saver)).ainvoke(said("use 1 confirm: it"), thread("t"))
    assert await in_flight(url, user) == 1
    done = await other.saver.attached(agent(other.saver)).ainvoke(Command(resume="fine"), thread("t"))
    assert done["messages"][-2].content.endswith(" was fine")
    assert await in_flight(url, user) == 0
    again = await one.saver.attached(agent(one.saver)).ainvoke(said("use 1 look: that"), thread("t"))
    assert unpaired(again["messages"]) == []
    assert (await other.values(thread("t")))["messages"][-1].content == "Done after 1 result(s)."


@only_async
async def test_the_bytes_of_a_turn_do_not_grow(saver_in_turns: Verbs, url: str, user: str) -> None:
    graph = saver_in_turns.saver.attached(agent(saver_in_turns.saver))
    costs = [0]
    for _ in range(24):
        await graph.ainvoke(said("use 2 look: something " + "x" * 100), thread("t"))
        costs.append(await stored_bytes(url, user))
    assert costs[24] - costs[16] < 1.1 * (costs[12] - costs[4])


@only_async
async def test_a_sweep_ends_what_nobody_ended(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver(tool_traffic="turn")
    made: list[str] = []
    graph = agent(saver.saver, made=made)  # without the callback
    await graph.ainvoke(said("use 1 look: ended by nobody"), thread("done"))
    await graph.ainvoke(said("hello"), thread("waits"))
    await saver.call("end_turn", thread("waits"))
    await graph.ainvoke(said("use 1 confirm: abandoned"), thread("waits"))
    assert await in_flight(url, user) == 2
    await saver.saver.asweep_turns(idle_seconds=3_600)
    assert await in_flight(url, user) == 2
    assert await saver.saver.asweep_turns(idle_seconds=0) >= 2
    assert await in_flight(url, user) == 0
    for name, expected in (("done", 3), ("waits", 4)):
        kept = (await saver.values(thread(name)))["messages"]
        assert len(kept) == expected
        assert unpaired(kept) == []
    values = b"\n".join(await every_value(url))
    assert [one for one in made if one.encode() in values] == []
    done = await graph.ainvoke(said("and now?"), thread("waits"))
    assert done["messages"][-1].content == "Done after 0 result(s)."


@only_async
async def test_a_turn_that_another_run_goes_on_with_is_not_ended_under_it(
    open_saver: Open, url: str, user: str
) -> None:
    one, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    await agent(one.saver).ainvoke(said("use 1 look: first"), thread("t"))
    keys = one.saver._session.router
    seen = await keys.use(lambda store: store.turn_keys.get(one.saver._thread("t")))
    await agent(other.saver).ainvoke(said("use 1 look: second"), thread("t"))
    dropped = await keys.use(lambda store: store.turn_keys.end(one.saver._thread("t"), seen, TurnRemains([], [])))
    assert dropped is False
    assert len((await one.values(thread("t")))["messages"]) == 8
    assert await one.call("end_turn", thread("t")) is True
    assert await in_flight(url, user) == 0
    assert len((await other.values(thread("t")))["messages"]) == 6


class DeletedMeanwhile(Projection):
    """Another process deletes the thread while this one makes out what stays of the turn."""

    def state(self, values: Any, before: Any) -> dict[str, Any]:
        kept = Projection.state(self, values, before)
        DELETE[0]()
        return kept


DELETE: list[Any] = []


@only_async
@pytest.mark.parametrize("turns_before", [0, 1])
async def test_a_thread_that_is_deleted_while_its_turn_ends_stays_deleted(
    open_saver: Open, url: str, user: str, monkeypatch: pytest.MonkeyPatch, turns_before: int
) -> None:
    one, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    graph = agent(one.saver)
    for _ in range(turns_before):
        await graph.ainvoke(said("hello"), thread("t"))
        await one.call("end_turn", thread("t"))
    await graph.ainvoke(said("use 1 look: something"), thread("t"))
    projection = one.saver._projection(one.saver._thread("t"))
    slow = DeletedMeanwhile(projection.rules, projection.scope, projection.keeps)
    monkeypatch.setattr(one.saver, "_projection", lambda _: slow)
    DELETE[:] = [lambda: other.saver.delete_thread("t")]
    assert await one.call("end_turn", thread("t")) is True
    assert await other.get(thread("t")) is None
    assert await count(url, "conversation_checkpoints", user) == 0
    assert await in_flight(url, user) == 0


@only_async
async def test_time_travel_goes_from_one_end_of_a_turn_to_another(saver_in_turns: Verbs) -> None:
    graph = saver_in_turns.saver.attached(agent(saver_in_turns.saver))
    for text in ("use 1 look: one", "use 1 look: two"):
        await graph.ainvoke(said(text), thread("t"))
    history = [state async for state in graph.aget_state_history(thread("t"))]
    assert [len(state.values["messages"]) for state in history] == [6, 3]
    forked = await graph.ainvoke(said("use 1 look: instead"), history[1].config)
    assert [one.content for one in forked["messages"] if isinstance(one, HumanMessage)][-1] == "use 1 look: instead"
    assert [one.content for one in (await saver_in_turns.values(thread("t")))["messages"]] == [
        "use 1 look: one",
        "Looking up 0.",
        "Done after 1 result(s).",
        "use 1 look: instead",
        "Looking up 0.",
        "Done after 1 result(s).",
    ]


class Noted(MessagesState):
    notes: Annotated[list[str], operator.add]
    scratch: str
    last: BaseMessage


@only_async
async def test_other_channels_stay_only_where_they_are_named(open_saver: Open) -> None:
    def work(state: Noted) -> dict[str, Any]:
        return {
            "notes": ["call +48 512 345 678"],
            "scratch": "tool output",
            "last": ToolMessage("secret", tool_call_id="1"),
            "messages": [AIMessage("done")],
        }

    graph = StateGraph(Noted)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    saver = await open_saver(tool_traffic="turn", turn_keeps=["notes"])
    attached = saver.saver.attached(graph.compile(checkpointer=saver.saver))
    for number in (1, 2):
        await attached.ainvoke(said("go"), thread("t"))
        values = await saver.values(thread("t"))
        assert values.keys() == {"messages", "notes"}
        assert values["notes"] == ["call [REDACTED:PHONE]"] * number
        assert len(values["messages"]) == 2 * number


@only_async
async def test_a_key_is_sealed_with_the_slot_key(open_saver: Open, url: str, user: str) -> None:
    settings = Settings(THREADKEEP_SLOT_KEY=SLOT_KEY)  # type: ignore[call-arg]
    saver = await open_saver(tool_traffic="turn", settings=settings)
    await agent(saver.saver).ainvoke(said("use 1 look: it"), thread("t"))
    other = await open_saver(tool_traffic="turn")
    with pytest.raises(CheckpointCorrupt, match="THREADKEEP_SLOT_KEY"):
        await other.get(thread("t"))
    with pytest.raises(CheckpointCorrupt, match="THREADKEEP_SLOT_KEY"):
        await other.call("end_turn", thread("t"))
    assert len((await saver.values(thread("t")))["messages"]) == 4
    assert await other.saver.aend_turn(thread("t"), abandon=True) is True
    assert await saver.get(thread("t")) is None
    assert await count(url, "tk_checkpoint_items", user) == 0


@only_async
async def test_a_saver_that_keeps_tool_traffic_is_told_of_a_turn_in_flight(open_saver: Open) -> None:
    saver = await open_saver(tool_traffic="turn")
    await agent(saver.saver).ainvoke(said("use 1 look: something"), thread("t"))
    other = await open_saver()
    with pytest.raises(CheckpointCorrupt, match=r'turn in flight.*tool_traffic="turn"'):
        await other.get(thread("t"))
    await saver.call("end_turn", thread("t"))
    assert len((await other.values(thread("t")))["messages"]) == 3


@only_async
async def test_what_was_encrypted_is_lost_with_its_key(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver(tool_traffic="turn")
    await agent(saver.saver).ainvoke(said("use 1 look: it"), thread("t"))
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    await rows(url, f"DELETE FROM tk_turn_keys WHERE thread_key IN ({keys})")
    with pytest.raises(CheckpointCorrupt, match="turn that has ended"):
        await (await open_saver(tool_traffic="turn")).get(thread("t"))


@only_async
async def test_what_a_turn_cannot_do_is_told(open_saver: Open, user: str) -> None:
    saver = await open_saver(tool_traffic="turn")
    await agent(saver.saver).ainvoke(said("use 1 look: it"), thread("t"))
    with pytest.raises(Conflict, match="in flight"):
        await saver.call("copy_thread", "t", "copy")
    with pytest.raises(CapabilityMissing, match="delta"):
        await saver.put(thread("d"), {"n": 1}, metadata={"counters_since_delta_snapshot": {"n": (1, 1)}})
    with pytest.raises(InvalidInput, match="idle_seconds"):
        await saver.saver.asweep_turns(-1)
    with pytest.raises(InvalidSetting, match="tool_traffic"):
        await open_saver(tool_traffic="never")
    with pytest.raises(InvalidSetting, match="SLOT_KEY"):
        await open_saver(tool_traffic="turn", settings=Settings(THREADKEEP_SLOT_KEY="short"))  # type: ignore[call-arg]
    await saver.call("delete_thread", "t")
    assert await saver.call("end_turn", thread("t")) is True
    keeping = await open_saver()
    assert await keeping.call("end_turn", thread("t")) is True
    assert await keeping.saver.asweep_turns(0) == 0


@only_async
async def test_a_stale_writer_is_still_told_of(open_saver: Open) -> None:
    saver = await open_saver(tool_traffic="turn", stale_writers="report")
    graph = saver.saver.attached(agent(saver.saver))
    for _ in range(2):
        await graph.ainvoke(said("use 1 look: it"), thread("t"))
    old = (await saver.list(thread("t")))[-1]
    await saver.get(thread("t"))
    with pytest.raises(StaleWriter):
        await saver.put(old.config, {"n": 1})


async def test_what_was_said_is_told_without_tools_in_either_mode(open_saver: Open, mode: str) -> None:
    for traffic in ("keep", "turn"):
        saver = await open_saver(tool_traffic=traffic)
        graph = agent(saver.saver)
        await invoke(graph, said("use 1 confirm: write to ann@example.org"), mode, thread(traffic))
        told = await saver.call("history", thread(traffic))
        assert [one.content for one in told] == ["use 1 confirm: write to [REDACTED:EMAIL]", "Looking up 0."]
        assert unpaired(told) == []
        assert unpaired((await saver.values(thread(traffic)))["messages"]) != []
    assert await saver.call("history", thread("nobody")) == []


def test_of_a_list_that_stays_only_what_is_new_is_looked_at() -> None:
    looked: list[str] = []

    def redactor(text: str) -> Any:
        looked.append(text)
        return admission_rules(Settings()).redactor(text)

    rules = replace(admission_rules(Settings()), redactor=redactor, redactor_for=None)
    projection = Projection(rules, Scope("t", "u"), frozenset({"notes"}))
    before = [{"n": 1, "text": "one"}, {"n": 2, "text": "two"}, {"n": 3, "text": "three"}]
    after = [*before[1:], {"n": 4, "text": "call +48 512 345 678"}]
    assert projection.state({"notes": after}, {"notes": before})["notes"] == [
        *before[1:],
        {"n": 4, "text": "call [REDACTED:PHONE]"},
    ]
    assert "two" not in looked
    changed = [before[0], {"n": 2, "text": "+48 512 345 678"}]
    assert projection.state({"notes": changed}, {"notes": before})["notes"][1]["text"] == "[REDACTED:PHONE]"


def test_a_projection_keeps_words_and_nothing_else() -> None:
    projection = Projection(admission_rules(Settings()), Scope("t", "u", "c"))
    call = {"name": "f", "args": {"secret": 1}, "id": "c1", "type": "tool_call"}
    given: list[BaseMessage] = [
        SystemMessage("be kind", id="s"),
        HumanMessage([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:x"}}], id="1"),
        HumanMessage([{"type": "image_url", "image_url": {"url": "data:x"}}], id="2"),
        AIMessage("", tool_calls=[call], id="3"),
        ToolMessage("secret", tool_call_id="c1", id="4"),
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}], id="5"),
        AIMessage("mail ann@example.org", additional_kwargs={"x": "secret"}, response_metadata={"y": "secret"}, id="6"),
        HumanMessage("hi", id="ann@example.org", name="Ann"),
        AIMessage("   "),
    ]
    kept = projection.messages(given)
    assert [(one.content, one.id) for one in kept[:3]] == [("see", "1"), ("so", "5"), ("mail [REDACTED:EMAIL]", "6")]
    assert "secret" not in repr(kept)
    assert len(kept) == 4
    assert kept[3].id not in (None, "ann@example.org")
    assert kept[3].name is None
    assert projection.messages(kept, kept) == kept


@only_async
async def test_the_callback_ends_the_turn_of_a_user_whom_only_the_config_names(open_saver: Open, user: str) -> None:
    saver = await open_saver(tool_traffic="turn", user=None)
    graph = saver.saver.attached(agent(saver.saver))
    configs = [thread("t", user_id=f"{user}{number}") for number in range(2)]
    await graph.ainvoke(said("use 1 confirm: wait"), configs[0])
    await graph.ainvoke(said("use 1 look: it"), configs[1])
    kept = [(await saver.values(config))["messages"] for config in configs]
    assert [one.type for one in kept[1]] == ["human", "ai", "ai"]
    assert kept[0][-1].tool_calls  # of another user, and it waits


@only_async
async def test_no_run_is_lost_that_goes_on_while_others_end_the_turn(open_saver: Open) -> None:
    one, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    for number in range(5):
        await agent(one.saver).ainvoke(said(f"use 1 look: {number}"), thread("t"))
        await asyncio.gather(
            one.saver.aend_turn(thread("t")),
            other.saver.aend_turn(thread("t")),
            agent(other.saver).ainvoke(said("and on"), thread("t")),
        )
        assert await one.call("end_turn", thread("t"))
    for saver in (one, other):
        kept = (await saver.values(thread("t")))["messages"]
        assert sum(isinstance(message, HumanMessage) for message in kept) == 10
        assert not any(isinstance(message, ToolMessage) for message in kept)
    assert len(await other.list(thread("t"))) >= 5


@only_async
async def test_a_run_that_began_while_the_last_turn_was_in_flight_goes_on_from_what_became_of_it(
    open_saver: Open,
) -> None:
    saver = await open_saver(tool_traffic="turn")
    read, ended = asyncio.Event(), asyncio.Event()

    async def answer(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) > 1:
            read.set()
            await ended.wait()
        return {"messages": [AIMessage("yes")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    compiled = graph.compile(checkpointer=saver.saver)
    await compiled.ainvoke(said("first"), thread("t"), durability="exit")
    second = asyncio.create_task(compiled.ainvoke(said("second"), thread("t"), durability="exit"))
    await read.wait()
    assert await saver.call("end_turn", thread("t")) is True
    ended.set()
    await second
    assert await saver.call("end_turn", thread("t")) is True
    newest, first = await saver.list(thread("t"))
    assert [one.content for one in newest.checkpoint["channel_values"]["messages"]] == ["first", "yes", "second", "yes"]
    assert newest.parent_config == first.config


class Inner(TypedDict):
    messages: list[BaseMessage]
    inner: list[BaseMessage]


@only_async
async def test_a_subgraph_that_remembers_is_projected_too(saver_in_turns: Verbs) -> None:
    def step(state: Inner) -> dict[str, Any]:
        before = state.get("inner") or []
        return {"inner": [*before, AIMessage(f"in {len(before)}"), ToolMessage("secret", tool_call_id="1")]}

    inner = StateGraph(Inner)
    inner.add_node("step", step)
    inner.add_edge(START, "step")
    inner.add_edge("step", END)
    outer = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile(checkpointer=True))
    outer.add_edge(START, "inner")
    outer.add_edge("inner", END)
    graph = saver_in_turns.saver.attached(outer.compile(checkpointer=saver_in_turns.saver))
    for _ in range(2):
        await graph.ainvoke(said("go"), thread("t"))
    kept = (await saver_in_turns.values(thread("t", "inner")))["inner"]
    assert [one.content for one in kept] == ["in 0", "in 1"]


@only_async
async def test_a_turn_that_waits_before_a_join_goes_on_waiting(saver_in_turns: Verbs) -> None:
    graph = StateGraph(MessagesState)
    for name in ("left", "right", "join"):
        graph.add_node(name, lambda state, name=name: {"messages": [AIMessage(f"from {name}")]})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "join")
    saver = saver_in_turns.saver
    talk = saver.attached(graph.compile(checkpointer=saver, interrupt_before=["join"]))
    for _ in range(2):
        await talk.ainvoke(said("go"), thread("t"))
        assert (await talk.aget_state(thread("t"))).next == ("join",)
        done = await talk.ainvoke(None, thread("t"))
        assert done["messages"][-1].content == "from join"
        assert (await talk.aget_state(thread("t"))).next == ()
        assert await saver.aend_turn(thread("t"))


@only_async
async def test_what_a_function_saved_for_its_next_call_stays_in_words(open_saver: Open, url: str, user: str) -> None:
    saver = (await open_saver(tool_traffic="turn")).saver

    @entrypoint(checkpointer=saver)
    async def talk(text: str, *, previous: Any = None) -> Any:
        said_before = previous or []
        call = {"name": "f", "args": {"secret": 1}, "id": "c1", "type": "tool_call"}
        now = [HumanMessage(text), AIMessage("", tool_calls=[call]), ToolMessage("secret", tool_call_id="c1")]
        answer = AIMessage(f"after {len(said_before)}")
        return entrypoint.final(value=answer.content, save=[*said_before, *now, answer])

    config = thread("t") | {"callbacks": [saver.turn_ends]}
    assert [await talk.ainvoke(text, config) for text in ("one", "two", "three")] == ["after 0", "after 2", "after 4"]
    assert await in_flight(url, user) == 0


@only_async
async def test_a_turn_whose_beginning_is_deleted_under_it_takes_nothing_else_along(saver_in_turns: Verbs) -> None:
    saver = saver_in_turns.saver
    graph = saver.attached(agent(saver))
    runs = [str(uuid4()) for _ in range(4)]
    for run, text in zip(runs[:3], ("one " * 50, "two " * 50, "use 1 confirm: it"), strict=True):
        await graph.ainvoke(said(text), thread("t") | {"metadata": {"run_id": run}})
    await saver.adelete_for_runs([runs[1]])
    await graph.ainvoke(Command(resume="yes"), thread("t") | {"metadata": {"run_id": runs[3]}})
    kept = [len(one.checkpoint["channel_values"]["messages"]) for one in await saver_in_turns.list(thread("t"))]
    assert kept == [7, 2]


@only_async
async def test_a_sweep_by_one_who_knows_less_leaves_what_was_kept_before(open_saver: Open) -> None:
    """The worker's: it is not told which channels may stay."""
    saver = await open_saver(tool_traffic="turn", turn_keeps=["notes"])

    class Noting(MessagesState):
        notes: Annotated[list[str], operator.add]

    def note(state: Noting) -> dict[str, Any]:
        if "wait" in str(state["messages"][-1].content):
            interrupt("well?")
        return {"notes": ["noted"], "messages": [AIMessage("ok")]}

    graph = StateGraph(Noting)
    graph.add_node("note", note)
    graph.add_edge(START, "note")
    talk = saver.saver.attached(graph.compile(checkpointer=saver.saver))
    await talk.ainvoke(said("hello"), thread("t"))
    await talk.ainvoke(said("wait"), thread("t"))
    await (await open_saver(tool_traffic="turn", user=None)).saver.asweep_turns(idle_seconds=0)
    values = await saver.values(thread("t"))
    assert values["notes"] == ["noted"]
    assert [one.content for one in values["messages"]] == ["hello", "ok", "wait"]


@only_async
async def test_a_damaged_thread_does_not_keep_a_sweep_from_the_others(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver(tool_traffic="turn")
    graph = agent(saver.saver)
    for name in ("damaged", "whole"):
        await graph.ainvoke(said("use 1 look: it"), thread(name))
    theirs = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}' AND thread_id = 'damaged'"
    nothing = "'\\x00'" if url.startswith("postgres") else "x'00'"
    await rows(url, f"UPDATE conversation_checkpoints SET checkpoint_blob = {nothing} WHERE thread_key IN ({theirs})")
    with pytest.raises(CheckpointCorrupt, match="damaged"):
        await (await open_saver(tool_traffic="turn")).saver.asweep_turns(idle_seconds=0)
    assert await in_flight(url, user) == 1
    await saver.call("delete_thread", "damaged")


@only_async
async def test_a_thread_that_kept_its_tool_traffic_keeps_none_after_its_first_turn(open_saver: Open) -> None:
    keeping, turning = await open_saver(), await open_saver(tool_traffic="turn")
    await agent(keeping.saver).ainvoke(said("use 1 look: my mail is ann@example.org"), thread("t"))
    for expected in (5, 7):
        await turning.saver.attached(agent(turning.saver)).ainvoke(said("hello"), thread("t"))
        kept = (await keeping.values(thread("t")))["messages"]
        assert {type(one) for one in kept} == {HumanMessage, AIMessage}
        assert [one for one in kept if getattr(one, "tool_calls", None)] == []
        assert "ann@example.org" not in repr(kept)
        assert len(kept) == expected


@only_async
async def test_the_checkpoint_that_a_turn_went_on_from_can_be_read_after_it(
    saver_in_turns: Verbs, url: str, user: str
) -> None:
    """LangGraph keeps an update of the state, or a command, as writes of the checkpoint that was there."""
    saver = saver_in_turns.saver
    graph = saver.attached(agent(saver))
    await graph.ainvoke(said("hello"), thread("t"))
    await graph.aupdate_state(thread("t"), {"messages": [HumanMessage("by the way", id="added")]})
    assert await saver.aend_turn(thread("t"))
    await graph.ainvoke(Command(update={"messages": [HumanMessage("and then", id="more")]}, goto="agent"), thread("t"))
    found = await saver_in_turns.list(thread("t"))
    assert [len(one.checkpoint["channel_values"]["messages"]) for one in found] == [5, 3, 2]
    assert await count(url, "tk_checkpoint_writes", user) == 0
    state = await graph.aget_state(found[-1].config)
    assert [one.content for one in state.values["messages"]] == ["hello", "Done after 0 result(s)."]


@only_async
async def test_a_turn_of_which_only_writes_were_stored_leaves_its_thread_readable(
    open_saver: Open, url: str, user: str
) -> None:
    saver = await open_saver(tool_traffic="turn")
    graph = saver.saver.attached(agent(saver.saver))
    await graph.ainvoke(said("hello"), thread("t"))
    latest = await saver.get(thread("t"))
    assert latest is not None
    for abandoned in (True, False):  # or its key is lost in another way
        await saver.call("put_writes", latest.config, [("messages", "killed after this")], "task")
        assert len((await saver.get(thread("t"))).pending_writes) == 1
        if abandoned:
            assert not await saver.call("end_turn", thread("t"))
            assert await saver.call("end_turn", thread("t"), abandon=True)
            assert await count(url, "tk_checkpoint_writes", user) == 0
        else:
            keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
            await rows(url, f"DELETE FROM tk_turn_keys WHERE thread_key IN ({keys})")
        for reader in (await open_saver(tool_traffic="turn"), await open_saver()):
            assert (await reader.get(thread("t"))).pending_writes == []


@only_async
async def test_an_update_that_no_task_follows_is_there_for_the_next_run(saver_in_turns: Verbs) -> None:
    graph = saver_in_turns.saver.attached(agent(saver_in_turns.saver))
    await graph.ainvoke(said("hello"), thread("t"))
    await graph.ainvoke(Command(update={"messages": [HumanMessage("and then", id="more")]}), thread("t"))
    done = await graph.ainvoke(said("goodbye"), thread("t"))
    assert [one.content for one in done["messages"] if one.type == "human"] == ["hello", "and then", "goodbye"]
    assert [one.content for one in await saver_in_turns.saver.ahistory(thread("t"))] == [
        one.content for one in done["messages"]
    ]
