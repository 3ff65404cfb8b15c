"""Checkpoints that assistants used to write with each turn: erase still reaches them, and they expire."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from tests.adapters.database import every_value, rows
from threadkeep import Memory, Scope, Settings, UserMessage, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.agent.turn import AgentState, ChatEntry
from threadkeep.compose.upkeep import open_retention
from threadkeep.testing.clock import FakeClock

DAY = 86_400
MARK = "zqhammockzq"
PLACE = Scope("shop", "guest", "talk-1")
SETTINGS = Settings().model_copy(update={"embedder": "none"})
EVERYTHING_OF_THEM = (
    "SELECT (SELECT count(*) FROM conversation_metadata WHERE user_id = 'guest'), (SELECT count(*) FROM"
    " conversation_checkpoints), (SELECT count(*) FROM tk_checkpoint_items), (SELECT count(*) FROM tk_turn_keys)"
)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    server = request.getfixturevalue(f"{request.param}_server")
    server.wipe()
    return server.url


@pytest.fixture
async def memory(url: str) -> AsyncIterator[Memory]:
    async with open_memory(url, settings=SETTINGS) as memory:
        await memory.append(PLACE, [UserMessage(f"Is there a {MARK} in the room?", id="m1"), UserMessage("Hello?")])
        yield memory


@pytest.fixture(params=["a turn that ended", "a turn cut off by a crash"])
async def written(request: pytest.FixtureRequest, url: str, memory: Memory) -> None:
    """The saver, its options and the metadata are those the assistant had."""
    kept = [*AgentState.__annotations__]
    config: Any = {
        "configurable": {"thread_id": PLACE.conversation, "user_id": PLACE.user, "tenant_id": PLACE.tenant},
        "metadata": {"threadkeep_from_memory": True},
    }
    said = ChatEntry(id="m1", role="user", content=f"Is there a {MARK} in the room?", created_at="2026-11-01T00:00:00Z")
    graph: Any = StateGraph(AgentState)
    graph.add_node("receive", lambda _: AgentState(chat_history=[said]))
    graph.add_edge(START, "receive")
    graph.add_edge("receive", END)
    async with ThreadkeepSaver.from_url(url, tool_traffic="turn", turn_keeps=kept, settings=SETTINGS) as saver:
        given = AgentState(conversation_id="talk-1", user_id="guest")
        await graph.compile(checkpointer=saver).ainvoke(given, config, durability="exit")
        if request.param == "a turn that ended":
            await saver.aend_turn(config)
    assert (await rows(url, EVERYTHING_OF_THEM))[0][0] == 1


def everything(memory: Memory) -> Any:
    return memory.erase(PLACE.whole_user)


def the_conversation(memory: Memory) -> Any:
    return memory.erase(PLACE)


@pytest.mark.parametrize("erased", [everything, the_conversation])
@pytest.mark.usefixtures("written")
async def test_erase_removes_them(url: str, memory: Memory, erased: Callable[[Memory], Any]) -> None:
    proof = await erased(memory)

    assert proof.complete
    assert proof.stores["checkpoints"].removed >= 1
    assert not [value for value in await every_value(url) if MARK.encode() in value]
    assert list((await rows(url, EVERYTHING_OF_THEM))[0])[1:] == [0, 0, 0]


@pytest.mark.usefixtures("written")
async def test_erase_of_a_message_removes_them_too(url: str, memory: Memory) -> None:
    async with ThreadkeepSaver.from_url(url, tool_traffic="turn", settings=SETTINGS) as saver:
        await saver.asweep_turns(idle_seconds=0)  # as the worker does daily with turns that were cut off

    proof = await memory.erase(PLACE, "m1")

    assert proof.complete
    assert proof.stores["checkpoints"].removed >= 1
    assert not [value for value in await every_value(url) if MARK.encode() in value]


@pytest.mark.usefixtures("written")
async def test_retention_removes_them_a_week_after_a_month_without_a_turn(url: str, memory: Memory) -> None:
    clock = FakeClock(datetime.now(UTC))
    async with open_retention(url, settings=SETTINGS, clock=clock) as retention:
        assert (await retention.run()).expired == 0
        clock.advance(31 * DAY)
        await memory.append(PLACE, [UserMessage("I am still here.")])  # which no longer touches the thread
        assert (await retention.run()).expired == 1
        clock.advance(8 * DAY)
        assert (await retention.run()).deleted == 1
    assert list((await rows(url, EVERYTHING_OF_THEM))[0]) == [0, 0, 0, 0]
    assert len((await memory.history(PLACE)).messages) == 3
