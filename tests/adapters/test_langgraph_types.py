"""Values of an application's own classes in a graph's state: read back as LangGraph's own savers do, and only those."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import uuid4

import ormsgpack
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, SecretStr

from tests.adapters.database import rows
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.errors import CheckpointCorrupt
from threadkeep.settings import Settings


class Taste(Enum):
    SWEET = "sweet"
    SOUR = "sour"


class Price(NamedTuple):
    amount: int
    currency: str


class Guest(BaseModel):
    name: str
    tastes: list[Taste] = []
    secret: SecretStr | None = None


@dataclass
class Order:
    item: str
    price: Price | None = None
    guest: Guest | None = None
    lines: list[Order] = field(default_factory=list)


class Later(datetime):
    """One of those whose method no serializer calls: LangGraph's own savers give its text."""


MADE: list[str] = []


@dataclass
class Harmful:
    """Nobody puts one: it comes from elsewhere, or not at all."""

    what: str

    def __post_init__(self) -> None:
        MADE.append(self.what)


ORDER = Order("tea", Price(3, "EUR"), Guest(name="Ann", tastes=[Taste.SWEET]), [Order("milk")])
TYPED: list[Any] = [
    ORDER,
    Guest(name="Bo"),
    Taste.SOUR,
    [ORDER, HumanMessage("with tea"), Taste.SWEET],
    {"deep": {"deeper": [ORDER]}, "kinds": {Taste.SOUR}, "line": deque([ORDER])},
    [Order("x" * 500)],
    Order("half an emoji \ud83d"),
    {"key": SecretStr("s")},
]


@pytest.mark.parametrize("value", TYPED, ids=range(len(TYPED)))
async def test_a_value_of_the_applications_own_class_comes_back_also_in_another_process(
    open_saver: Open, value: Any
) -> None:
    first = await open_saver()
    stored = await first.put(thread("t"), {"x": value}, metadata={"step": 1, "by": Taste.SOUR})
    await first.call("put_writes", stored, [("y", value)], "task")
    for reader in (first, await open_saver()):  # who opens one later knows no more than the database
        found = await reader.get(thread("t"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"x": value}
        assert found.metadata["by"] is Taste.SOUR  # type: ignore[typeddict-item]
        assert [write[2] for write in found.pending_writes or ()] == [value]
        assert [one.checkpoint["channel_values"]["x"] for one in await reader.list(thread("t"))] == [value]


async def test_a_reader_that_was_open_before_learns_of_types_that_others_put_later(open_saver: Open) -> None:
    writer, reader = await open_saver(), await open_saver()
    await writer.put(thread("first"), {"x": Taste.SOUR})
    assert await reader.values(thread("first")) == {"x": Taste.SOUR}
    await writer.put(thread("second"), {"x": ORDER})
    assert await reader.values(thread("second")) == {"x": ORDER}


async def test_a_process_that_has_not_imported_the_class_yet_reads_it_too(url: str, user: str, tmp_path: Path) -> None:
    name = f"shop_{uuid4().hex}"
    module = tmp_path / f"{name}.py"
    module.write_text("from dataclasses import dataclass\n@dataclass\nclass Cart:\n    size: int\n")
    script = (
        "import asyncio, sys\nfrom langgraph.checkpoint.base import empty_checkpoint\n"
        "from threadkeep.adapters.langgraph import ThreadkeepSaver\n"
        f"config = {{'configurable': {{'thread_id': 't', 'checkpoint_ns': ''}}}}\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"with ThreadkeepSaver.from_url_sync({url!r}, user={user!r}) as saver:\n"
        "    if sys.argv[1] == 'put':\n"
        f"        import {name}\n"
        f"        values = {{'x': {name}.Cart(3)}}\n"
        "        checkpoint = empty_checkpoint() | {'channel_values': values, 'channel_versions': {'x': '1'}}\n"
        "        saver.put(config, checkpoint, {}, {'x': '1'})\n"
        "    else:\n"
        "        print(saver.get_tuple(config).checkpoint['channel_values'])\n"
    )
    for step in ("put", "get"):
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script, step], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{'x': Cart(size=3)}"
    assert "Blocked" not in done.stderr  # LangGraph's own warning, of what it may not load


async def test_a_value_that_no_serializer_can_rebuild_comes_back_as_langgraph_gives_it(saver: Verbs) -> None:
    class Local(BaseModel):
        size: int

    @dataclass
    class Line:
        size: int

    moment = Later(2026, 11, 19, 8)
    await saver.put(thread("t"), {"model": Local(size=1), "line": Line(2), "when": moment})
    usual = JsonPlusSerializer()
    given = {"model": Local(size=1), "line": Line(2), "when": moment}
    assert await saver.values(thread("t")) == {
        name: usual.loads_typed(usual.dumps_typed(value)) for name, value in given.items()
    }


def hostile(code: int, *parts: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


ELSEWHERE = [
    hostile(0, "os", "system", "true"),
    hostile(1, "subprocess", "Popen", ["true"]),
    hostile(2, __name__, "Harmful", {"what": "made"}),
    hostile(3, "os", "path", "x", "exists"),
    hostile(4, __name__, "Harmful", {"what": "made"}),
    hostile(5, __name__, "Harmful", {"what": "made"}, "model_validate_json"),
    ormsgpack.packb([{"deep": ormsgpack.Ext(2, ormsgpack.packb((__name__, "Harmful", {"what": "made"})))}]),
    hostile(5, "antigravity", "Geohash", {}, "x"),  # a module that opens a browser when it is imported
]


async def _replaced(url: str, user: str, blob: bytes) -> None:
    """The writes of this user's tasks, by somebody who can write to the database."""
    from threadkeep.adapters.langgraph.codec import packed
    from threadkeep.adapters.langgraph.pages import squeezed

    data = squeezed(packed(["msgpack", blob])).hex()
    literal = f"'\\x{data}'" if url.startswith("postgres") else f"x'{data}'"
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    await rows(url, f"UPDATE tk_checkpoint_writes SET data = {literal} WHERE thread_key IN ({keys})")


@pytest.fixture
def made() -> Iterator[list[str]]:
    MADE.clear()
    yield MADE
    MADE.clear()


@pytest.mark.parametrize("blob", ELSEWHERE, ids=range(len(ELSEWHERE)))
async def test_a_type_that_this_application_never_put_is_refused(
    open_saver: Open, url: str, user: str, blob: bytes, made: list[str]
) -> None:
    writer = await open_saver()
    stored = await writer.put(thread("t"), {"x": ORDER})
    await writer.call("put_writes", stored, [("y", ORDER)], "task")
    await _replaced(url, user, blob)
    for saver in (writer, await open_saver()):
        with pytest.raises(CheckpointCorrupt, match=r"which the serializer may not load"):
            await saver.get(thread("t"))
    assert made == []
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("name", [("os", "system"), ("subprocess", "Popen"), ("builtins", "eval")])
async def test_what_is_no_class_of_values_is_never_called_whatever_the_database_says(
    open_saver: Open, url: str, user: str, tmp_path: Path, name: tuple[str, str]
) -> None:
    writer = await open_saver()
    stored = await writer.put(thread("t"), {"x": 1})
    await writer.call("put_writes", stored, [("y", 1)], "task")
    proof = tmp_path / "called"
    await _replaced(url, user, hostile(0, *name, f"touch {proof}"))
    said = "CAST('{}' AS BINARY)" if url.startswith("mysql") else "'{}'"
    module, cls = (said.format(one) for one in name)
    await rows(url, f"DELETE FROM tk_checkpoint_types WHERE module = {module}")
    await rows(url, f"INSERT INTO tk_checkpoint_types (module, name) VALUES ({module}, {cls})")
    try:
        with pytest.raises(CheckpointCorrupt, match="may not load"):
            await (await open_saver()).get(thread("t"))
        assert not proof.exists()
    finally:
        await rows(url, f"DELETE FROM tk_checkpoint_types WHERE module = {module}")


async def test_a_serializer_of_ones_own_allows_what_it_says_and_no_more(open_saver: Open) -> None:
    strict = await open_saver(serde=JsonPlusSerializer(allowed_msgpack_modules=[(__name__, "Price")]))
    await strict.put(thread("t"), {"x": ORDER})
    with pytest.raises(CheckpointCorrupt, match=r"channel 'x' holds a .*may not load"):
        await strict.get(thread("t"))


class State(TypedDict):
    messages: Annotated[list[BaseMessage], lambda old, new: [*old, *new]]
    order: Order
    anything: Any


class PydanticState(BaseModel):
    guest: Guest
    visits: int = 0


@dataclass
class DataState:
    order: Order
    turns: int = 0


async def test_a_graph_with_typed_values_goes_on_turn_after_turn_and_resumes(open_saver: Open) -> None:
    def work(state: State) -> dict[str, Any]:
        order = state["order"]
        return {"order": Order(order.item, Price(1, "EUR"), lines=[*order.lines, Order("more")]), "anything": [ORDER]}

    def ask(state: State) -> dict[str, Any]:
        return {"anything": [interrupt(Guest(name="who?")), state["order"]]}

    builder = StateGraph(State)
    builder.add_sequence([work, ask])
    builder.add_edge(START, "work")
    from langgraph.types import Command

    for turn in range(1, 4):
        graph = builder.compile((await open_saver()).saver)
        given: Any = {"messages": [HumanMessage("hi")]} | ({"order": Order("tea")} if turn == 1 else {})
        paused = await graph.ainvoke(given, thread("t"))
        assert paused["__interrupt__"][0].value == Guest(name="who?")
        graph = builder.compile((await open_saver()).saver)
        done = await graph.ainvoke(Command(resume=Guest(name="Ann")), thread("t"))
        assert done["order"] == Order("tea", Price(1, "EUR"), lines=[Order("more")] * turn)
        assert done["anything"] == [Guest(name="Ann"), done["order"]]
    assert len([one async for one in graph.aget_state_history(thread("t"))]) > 6


@pytest.mark.parametrize("schema", [PydanticState, DataState])
async def test_a_graph_whose_whole_state_is_a_class_goes_on(open_saver: Open, schema: Any) -> None:
    def count(state: Any) -> dict[str, Any]:
        if isinstance(state, PydanticState):
            return {"visits": state.visits + 1, "guest": Guest(name=state.guest.name + "!")}
        return {"turns": state.turns + 1, "order": Order(state.order.item + "!")}

    def each(state: Any) -> list[Send]:
        return [Send("take", state)]

    builder: Any = StateGraph(schema)
    builder.add_node("count", count)
    builder.add_node("take", lambda state: {})
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", each, ["take"])
    for turn in (1, 2, 3):
        graph = builder.compile((await open_saver()).saver)
        first = {"guest": Guest(name="Ann")} if schema is PydanticState else {"order": Order("tea")}
        done = await graph.ainvoke(first if turn == 1 else {}, thread("t"))
    assert done == (
        {"guest": Guest(name="Ann!!!"), "visits": 3}
        if schema is PydanticState
        else {"order": Order("tea!!!"), "turns": 3}
    )


class Extract(BaseModel):
    answer: str


class Structured(BaseChatModel):
    """Answers in words, or as told by the tool that carries the form of the answer."""

    tool: str = ""

    @property
    def _llm_type(self) -> str:
        return "structured"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        named = [one["function"]["name"] if isinstance(one, dict) else one.name for one in tools]
        return Structured(tool=named[-1])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        call: Any = {"name": self.tool, "args": {"answer": f"after {len(messages)}"}, "id": uuid4().hex}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


async def test_an_agent_with_a_response_format_goes_on(open_saver: Open) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langchain.agents.structured_output import ToolStrategy

    for turn in (1, 2, 3):
        saver = (await open_saver()).saver
        agent = agents.create_agent(Structured(), [], response_format=ToolStrategy(Extract), checkpointer=saver)
        done = await agent.ainvoke({"messages": [HumanMessage(f"turn {turn}")]}, thread("t"))
        assert isinstance(done["structured_response"], Extract)
    assert len(done["messages"]) == 9
    assert (await agent.aget_state(thread("t"))).values["structured_response"] == done["structured_response"]


async def test_typed_values_survive_a_turn_whose_tool_traffic_goes(url: str, user: str) -> None:
    def work(state: State) -> dict[str, Any]:
        return {"order": Order("tea", lines=[*state["order"].lines, Order("call 512-555-0142")])}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    given: Any = {"messages": [HumanMessage("hi")], "order": ORDER}
    for _turn in (1, 2, 3):
        options: Any = {"user": user, "tool_traffic": "turn", "turn_keeps": ["order"], "settings": Settings()}
        async with ThreadkeepSaver.from_url(url, **options) as saver:
            await builder.compile(saver).ainvoke(given, thread("t"))
            given = {"messages": [HumanMessage("more")]}
            assert await saver.aend_turn(thread("t"))
    async with ThreadkeepSaver.from_url(url, **options) as saver:
        found = await saver.aget_tuple(thread("t"))
        assert found is not None
        lines = [Order("milk"), *[Order("call [REDACTED:PHONE]")] * 3]
        assert found.checkpoint["channel_values"]["order"] == Order("tea", lines=lines)


def test_the_private_names_that_are_imported_are_where_they_were() -> None:
    """No public name says which types the serializer makes without being allowed to, nor what a delta snapshot is.

    Where this fails after an update of langgraph-checkpoint, look at `codec.py`: a type that moved would be listed as
    the application's own, and a snapshot would be stored as a whole.
    """
    from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
    from langgraph.checkpoint.serde.types import _DeltaSnapshot

    assert version("langgraph-checkpoint").startswith("4.3.")
    assert ("langchain_core.messages.human", "HumanMessage") in SAFE_MSGPACK_TYPES
    assert ("tests.adapters.test_langgraph_types", "Order") not in SAFE_MSGPACK_TYPES
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    snapshot = strict.loads_typed(strict.dumps_typed(_DeltaSnapshot([1])))
    assert isinstance(snapshot, _DeltaSnapshot)
    assert snapshot.value == [1]
