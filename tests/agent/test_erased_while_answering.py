"""What is erased while it is being answered stays erased; threads of graphs are erased as they should be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from tests.adapters.database import every_value
from tests.agent.recording import RecordingModel
from threadkeep import ErasureProof, Memory, Scope, Settings, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.agent.assistant import Assistant
from threadkeep.compose.assistant import open_assistant
from threadkeep.errors import ModelUnavailable
from threadkeep.ports.chat import Answer, Asked, ChatReply, ChatRequest
from threadkeep.testing.traces import Traces

EXAMPLE = Path(__file__).parents[2] / "examples" / "hotel_concierge"
MARK = "zqhammockzq"
PLACE = Scope("shop", "guest", "talk-1")


class ModelThatWaits(RecordingModel):
    """Asked for anything, it says so, and answers once it may."""

    def __init__(self) -> None:
        super().__init__("With pleasure.")
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.asked.set()
        await self.may_answer.wait()
        if self.fails:
            raise ModelUnavailable("nobody there")
        return await super().reply(request)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return request.getfixturevalue(f"{request.param}_server").url


@asynccontextmanager
async def talking(url: str, model: RecordingModel) -> AsyncIterator[tuple[Memory, Assistant]]:
    settings = Settings(DATABASE_URL=url, THREADKEEP_EMBEDDER="none")  # pyright: ignore[reportCallIssue]
    async with open_memory(url, settings=settings) as memory:
        await memory.erase(PLACE.whole_user)
        async with open_assistant(memory, settings, EXAMPLE, url=url, model=model) as assistant:
            yield memory, assistant


async def left(url: str, folder: Path) -> set[str]:
    if url.startswith("sqlite"):
        return {trace.file for trace in Traces([MARK]).in_folder(folder)}
    return {value.decode(errors="replace") for value in await every_value(url) if MARK.encode() in value}


async def ids_of(memory: Memory, words: str) -> list[str]:
    return [one.id for one in (await memory.history(PLACE)).messages if words in one.content]


@pytest.mark.parametrize("earlier", [0, 1], ids=["in its first turn", "in its second turn"])
@pytest.mark.parametrize("what", ["message", "conversation", "user"])
async def test_what_is_erased_while_it_is_answered_is_nowhere_afterwards(
    url: str, tmp_path: Path, what: Literal["message", "conversation", "user"], earlier: int
) -> None:
    model = ModelThatWaits()
    async with talking(url, model) as (memory, assistant):
        await had_turns(earlier, model, assistant)
        answering = await erased_under_way(what, model, memory, assistant)
        await answering
        await assistant.settled()
        assert await left(url, tmp_path) == set()


@pytest.mark.parametrize("earlier", [0, 1], ids=["in its first turn", "in its second turn"])
@pytest.mark.parametrize("what", ["message", "conversation", "user"])
async def test_nor_is_it_where_no_answer_came_of_it(
    url: str, tmp_path: Path, what: Literal["message", "conversation", "user"], earlier: int
) -> None:
    model = ModelThatWaits()
    async with talking(url, model) as (memory, assistant):
        await had_turns(earlier, model, assistant)
        model.fails = True
        answering = await erased_under_way(what, model, memory, assistant)
        with pytest.raises(ModelUnavailable):
            await answering
        await assistant.settled()
        assert await left(url, tmp_path) == set()


async def test_an_erased_user_is_not_named_in_the_ledger_by_a_turn_that_was_under_way(url: str) -> None:
    model = ModelThatWaits()
    async with talking(url, model) as (memory, assistant):
        answering = asyncio.create_task(assistant.respond(Asked(PLACE, "Is there a pool?")))
        await asyncio.wait_for(model.asked.wait(), 30)
        assert (await memory.erase(PLACE.whole_user)).complete
        model.may_answer.set()
        await answering
        await assistant.settled()
        assert (await memory.stats(PLACE.whole_user)).usage == {}


async def had_turns(number: int, model: ModelThatWaits, assistant: Assistant) -> None:
    model.may_answer.set()
    for _ in range(number):
        await assistant.respond(Asked(PLACE, "Good evening, is the pool open?"))
    await assistant.settled()
    model.may_answer.clear()
    model.asked.clear()


async def erased_under_way(
    what: Literal["message", "conversation", "user"], model: ModelThatWaits, memory: Memory, assistant: Assistant
) -> asyncio.Task[Answer]:
    """A turn whose message is gone by the time the model may answer."""
    answering = asyncio.create_task(assistant.respond(Asked(PLACE, f"Is there a {MARK} in the room?")))
    await asyncio.wait_for(model.asked.wait(), 30)
    assert (await erased(memory, what)).complete
    model.may_answer.set()
    return answering


async def erased(memory: Memory, what: Literal["message", "conversation", "user"]) -> ErasureProof:
    if what == "message":
        return await memory.erase(PLACE, (await ids_of(memory, MARK))[0])
    return await memory.erase(PLACE if what == "conversation" else PLACE.whole_user)


async def test_a_thread_of_the_applications_own_stays_and_the_proof_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    config: Any = {"configurable": {"thread_id": PLACE.conversation}}
    async with (
        talking(url, RecordingModel()) as (memory, _),
        ThreadkeepSaver.from_url(url, tenant=PLACE.tenant, user=PLACE.user) as saver,
    ):
        graph = a_graph(saver)
        await graph.ainvoke({"count": 1}, config)
        proof = await memory.erase(PLACE, "m1")
        assert (await graph.aget_state(config)).values == {"count": 2}
    assert proof.complete
    assert "checkpoints" in " ".join(proof.notes)


class Counted(TypedDict):
    count: int


def a_graph(saver: ThreadkeepSaver) -> Any:
    graph: Any = StateGraph(Counted)
    graph.add_node("add", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    return graph.compile(checkpointer=saver)


async def test_a_thread_that_begins_while_its_user_is_being_erased_goes_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first checkpoint comes when the earlier ones are gone, and before the archive raises the generation."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    config: Any = {"configurable": {"thread_id": MARK}}
    async with (
        talking(url, RecordingModel()) as (memory, _),
        ThreadkeepSaver.from_url(url, tenant=PLACE.tenant, user=PLACE.user) as saver,
    ):
        archive, erase = memory._stores.archive, memory._stores.archive.erase

        async def after_a_checkpoint(scope: Scope, message_id: str | None = None) -> ErasureProof:
            monkeypatch.undo()
            await a_graph(saver).ainvoke({"count": 1}, config)
            return await erase(scope, message_id)

        monkeypatch.setattr(archive, "erase", after_a_checkpoint)
        proof = await memory.erase(PLACE.whole_user)
        assert proof.complete
        assert proof.stores["checkpoints"].removed >= 1
        assert await left(url, tmp_path) == set()
