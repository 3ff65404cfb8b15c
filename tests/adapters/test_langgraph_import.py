"""Threads of LangGraph's own savers, taken over: every checkpoint, its metadata, its writes, its parent."""

from __future__ import annotations

import json
import operator
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from tests.adapters.agent import agent
from tests.adapters.test_langgraph_probes import delta_state, run_delta
from tests.adapters.verbs import thread, verbs_of
from tests.contract.sql_statements import execute
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.adapters.langgraph.importing import Owners, import_threads
from threadkeep.cli.app import run
from threadkeep.errors import InvalidSetting, NotFound
from threadkeep.settings import Settings

PEERS = {
    "sqlite": ("langgraph.checkpoint.sqlite.aio", "AsyncSqliteSaver"),
    "postgres": ("langgraph.checkpoint.postgres.aio", "AsyncPostgresSaver"),
    "mysql": ("langgraph.checkpoint.mysql.asyncmy", "AsyncMySaver"),
}


@pytest.fixture
async def source(url: str, tmp_path: Path) -> str:
    """A place of the peer's own on each database."""
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'theirs.db'}"
    for table in ("checkpoint_migrations", "checkpoint_blobs", "checkpoint_writes", "checkpoints"):
        await execute(url, f"DROP TABLE IF EXISTS {table}")
    return url


@asynccontextmanager
async def peer(source: str) -> AsyncIterator[Any]:
    kind = next(name for name in PEERS if source.startswith(name))
    module = pytest.importorskip(PEERS[kind][0])
    where = source.removeprefix("sqlite:///").replace("mysql://", "mysql+asyncmy://")
    async with getattr(module, PEERS[kind][1]).from_conn_string(where) as saver:
        await saver.setup()
        yield saver


class Said(TypedDict):
    said: Annotated[list[str], operator.add]


def nested_graph(saver: Any) -> Any:
    """A subgraph that has a namespace of its own, and asks."""
    inner = StateGraph(Said)
    inner.add_node("think", lambda state: {"said": ["inner thinks"]})
    inner.add_node("ask", lambda state: {"said": [f"inner heard {interrupt('well?')}"]})
    inner.add_edge(START, "think")
    inner.add_edge("think", "ask")
    outer = StateGraph(Said)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile(checkpointer=saver)


@pytest.mark.filterwarnings("ignore")  # of the peers' drivers
async def test_threads_of_the_peer_come_over_whole(source: str, url: str, user: str) -> None:
    config = {"configurable": {"thread_id": "talk", "user_id": user}}
    async with peer(source) as theirs:
        graph = agent(theirs)
        await graph.ainvoke({"messages": [HumanMessage("use 2 look: things")]}, config)
        await graph.ainvoke({"messages": [HumanMessage("use 1 confirm: it")]}, config)
        await graph.ainvoke({"messages": [HumanMessage("hello")]}, thread("nobody's"))
        expected = [one async for one in theirs.alist(thread("talk"))]
    async with ThreadkeepSaver.from_url(url, settings=Settings()) as saver:
        for _ in range(2):  # again, to the same effect
            done = await import_threads(source, saver, Owners())
            assert (done.threads, done.checkpoints) == (1, len(expected))
            assert done.writes == sum(len(one.pending_writes) for one in expected)
            assert [*done.problems] == ["nobody's"]
        mine = saver.for_user(user)
        ours = [one async for one in mine.alist(thread("talk"))]
        assert [one.checkpoint for one in ours] == [one.checkpoint for one in expected]
        done = await agent(mine).ainvoke(Command(resume="yes"), thread("talk"))
        assert done["messages"][-1].content == "Done after 1 result(s)."
        done = await import_threads(source, saver, Owners(user=f"{user}2"))
        assert done.complete
        assert done.threads == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.filterwarnings("ignore")  # of the peers' drivers
async def test_a_delta_thread_of_the_peer_goes_on_where_it_was(source: str, url: str, user: str) -> None:
    """Its state is the writes of parallel tasks, in the order of the tasks' paths."""
    async with peer(source) as theirs:
        live = await run_delta(verbs_of(theirs, "async"), "async", 3)
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as saver:
        assert (await import_threads(source, saver, Owners(user=user))).complete
        ours = verbs_of(saver, "async")
        assert await delta_state(ours, "async") == live
        assert (await run_delta(ours, "async", 1))[:-4] == live


@pytest.mark.filterwarnings("ignore")  # of the peers' drivers
async def test_a_thread_with_subgraphs_and_forks_goes_on_where_it_was(source: str, url: str, user: str) -> None:
    async with peer(source) as theirs:
        graph = nested_graph(theirs)
        await graph.ainvoke({"said": ["hello"]}, thread("t"))
        first = [state async for state in graph.aget_state_history(thread("t"))][-1]
        await graph.ainvoke(Command(resume="yes"), thread("t"))
        await graph.ainvoke({"said": ["other"]}, first.config)
        expected = {str(one.config): one async for one in theirs.alist(thread("t"))}
        waiting = await graph.aget_state(thread("t"), subgraphs=True)
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as saver:
        assert (await import_threads(source, saver, Owners(user=user))).problems == {}
        assert {str(one.config) for one in [one async for one in saver.alist(thread("t"))]} == {*expected}
        graph = nested_graph(saver)
        state = await graph.aget_state(thread("t"), subgraphs=True)
        assert (state.values, state.next) == (waiting.values, waiting.next)
        assert state.tasks[0].state.values == waiting.tasks[0].state.values
        done = await graph.ainvoke(Command(resume="sure"), thread("t"))
        assert done["said"][-1] == "inner heard sure"


async def test_a_hostile_or_unknown_type_is_told_and_not_loaded(tmp_path: Path, user: str) -> None:
    source = f"sqlite:///{tmp_path / 'theirs.db'}"
    async with peer(source) as theirs:
        await agent(theirs).ainvoke({"messages": [HumanMessage("hi")]}, thread("good"))
        await agent(theirs).ainvoke({"messages": [HumanMessage("hi")]}, thread("bad"))
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection, connection:
        blob = b"\xc7\x2f\x00\x94\xa2os\xa6system\xa9touch /x.\xc0" + bytes(20)
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = 'bad'", (blob,))
    async with ThreadkeepSaver.from_url("sqlite://", settings=Settings()) as saver:
        done = await import_threads(source, saver, Owners(user))
        assert (done.threads, [*done.problems]) == (1, ["bad"])


def test_the_command_tells_what_came_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs, ours = tmp_path / "theirs.db", f"sqlite:///{tmp_path / 'ours.db'}"
    module = pytest.importorskip("langgraph.checkpoint.sqlite")
    with module.SqliteSaver.from_conn_string(str(theirs)) as saver:
        agent(saver).invoke({"messages": [HumanMessage("hi")]}, thread("t"))
    command = ["import", "langgraph", "--from", f"sqlite:///{theirs}", "--url", ours]
    assert run([*command, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["threads"], [*told["problems"]]) == (0, ["t"])
    assert run([*command, "--user", "u"]) == 0
    assert "Imported and compared" in capsys.readouterr().out


async def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    async with ThreadkeepSaver.from_url("sqlite://", settings=Settings()) as saver:
        with pytest.raises(NotFound, match="no such file"):
            await import_threads(f"sqlite:///{tmp_path}/none.db", saver, Owners("u"))
        with pytest.raises(NotFound, match="no threads"):
            await import_threads(f"sqlite:///{tmp_path}/empty.db", saver, Owners("u"))
        with pytest.raises(InvalidSetting, match="--from"):
            await import_threads("mongodb://x", saver, Owners("u"))
        with pytest.raises(InvalidSetting, match="--from") as refused:
            await import_threads("postgresql://me:geheim@127.0.0.1:1/x", saver, Owners("u"))
        assert "geheim" not in str(refused.value)
