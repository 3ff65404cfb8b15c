"""Data that an earlier version wrote is opened without a difference: files of it lie in tests/data/earlier."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from langchain_core.messages import HumanMessage

from tests.contract.sql_statements import execute
from tests.data.earlier import write
from tests.data.earlier.reading import everything
from tests.servers.redis import RedisServer, client
from threadkeep import ModelResponse, Scope, UserMessage, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.errors import Conflict, ScopeErased
from threadkeep.http.app import create_app
from threadkeep.settings import load_settings

FOLDER = Path(__file__).parents[1] / "data" / "earlier"
ALL_OF_THE_TALK = [*write.FLUSHED, *write.WAITING]
Restore = Callable[[str], Any]


@pytest.fixture(autouse=True)
def settings_of_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in write.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def restored(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Restore:
    """`await restored("_queued")`: the URL of a database with what the file of that name holds."""

    async def restore(which: str) -> str:
        if kind == "sqlite":
            path = tmp_path / "memory.db"
            path.write_bytes(gzip.decompress((FOLDER / f"sqlite{which}.db.gz").read_bytes()))
            return f"sqlite:///{path}"
        server = request.getfixturevalue(f"{kind}_server")
        server.wipe()
        text = (FOLDER / f"{kind}{which}.sql").read_text("utf-8")
        if kind == "postgres":
            connection = await asyncpg.connect(server.url, statement_cache_size=0)
            await connection.execute(text)
            await connection.close()
        else:
            await execute(
                server.url,
                "SET foreign_key_checks = 0",
                "SET time_zone = '+00:00'",
                *text.removesuffix(";\n").split(";\n"),
            )
        return server.url

    return restore


@pytest.fixture
async def url(restored: Restore) -> str:
    return await restored("")


@pytest.fixture
def written(kind: str) -> dict[str, Any]:
    """What the version that wrote the data read in it."""
    return json.loads((FOLDER / f"{kind}.json").read_text("utf-8"))


async def test_all_that_was_kept_is_read_as_it_was_written(url: str, written: dict[str, Any]) -> None:
    del written["written"]
    found = json.loads(json.dumps(await everything(url)))
    for name, value in written.items():
        assert found[name] == value, name
    assert found.keys() == written.keys()


async def test_what_was_erased_stays_erased(url: str) -> None:
    async with open_memory(url) as memory:
        with pytest.raises(ScopeErased):
            await memory.append(write.BOB.at(0), [UserMessage("work that began before the erasure")])
        receipt = await memory.append(
            write.BOOKING,
            [UserMessage("It is back.", id="b6"), ModelResponse(f"You said that {write.FORGOTTEN}.", id="b8")],
        )
        assert (receipt.kept, dict(receipt.refused)) == ((), {"erased": 2})
        ids = [message.id for message in (await memory.history(write.BOOKING)).messages]
    assert ids == ["b1", "b2", "b3", "b5", "b7"]


async def test_a_key_returns_its_first_receipt(url: str, written: dict[str, Any]) -> None:
    async with open_memory(url) as memory:
        receipt = await memory.append(write.BOOKING, [write.KEYED], key=write.KEY)
        assert receipt.replayed
        assert receipt.as_dict() == written["written"]["keyed"]
        with pytest.raises(Conflict):
            await memory.append(write.BOOKING, [UserMessage("something else")], key=write.KEY)
        assert (await memory.append(write.BOOKING, [UserMessage("And then?")])).seq == 8


async def test_threads_and_sessions_go_on(url: str) -> None:
    async with ThreadkeepSaver.from_url(url, tenant="shop", user="ann") as saver:
        state = await write.graph_of(saver).ainvoke({"messages": [HumanMessage("And then?")]}, write.thread("graph"))
    assert next(one.content for one in state["messages"] if one.type == "human") == "What can I eat?"
    assert state["messages"][-1].content == "Answer 3: soup is safe."
    async with ThreadkeepSessionService.from_url(url, tenant="shop", redis="") as sessions:
        session = await sessions.get_session(app_name="bot", user_id="ann", session_id="adk")
        assert session
        await sessions.append_event(session, write.said("user", "and to drink?"))
        session = await sessions.get_session(app_name="bot", user_id="ann", session_id="adk")
        assert session
        assert [one.content.parts[0].text for one in session.events if one.content and one.content.parts] == [
            "what can I eat?",
            "soup",
            "and to drink?",
        ]
    async with ThreadkeepSession("agents", url, tenant="shop", user="ann", redis="") as session:
        await session.add_items([{"role": "user", "content": "Thanks"}])
        assert [item["content"] for item in await session.get_items()] == [
            "My order is late",
            "It comes on Monday.",
            "Thanks",
        ]


async def test_an_api_key_is_accepted(url: str, written: dict[str, Any]) -> None:
    app = create_app(load_settings().model_copy(update={"database_url": url, "redis_url": None}))
    asked = {"tenant": "shop", "user": "ann", "conversation": "trip"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        path = "/v1/memory/history"
        answer = await http.get(path, params=asked, headers={"X-API-Key": written["written"]["api_key"]})
        assert (await http.get(path, params=asked)).status_code == 401
    assert answer.status_code == 200
    assert [message["id"] for message in answer.json()["messages"]] == ["t1", "t2", "t3"]


async def contents(memory: Any, scope: Scope) -> list[str]:
    return [message.content for message in (await memory.history(scope)).messages]


async def test_entries_that_wait_in_the_journal_reach_the_archive_in_order(
    restored: Restore, kind: str, new_redis: Callable[..., RedisServer]
) -> None:
    url, redis = await restored("_queued"), new_redis().url
    commands = json.loads((FOLDER / f"{kind}_queued_redis.json").read_text("utf-8"))
    with client(redis) as server:
        for command in commands:
            server.execute_command(
                *[bytes.fromhex(part["hex"]) if isinstance(part, dict) else part for part in command]
            )
    async with open_memory(url, redis="") as memory:
        assert await contents(memory, write.TALK) == [*write.FLUSHED]
    async with open_memory(url, redis=redis) as memory:
        assert await contents(memory, write.TALK) == ALL_OF_THE_TALK
        replay = await memory.append(write.TALK, [UserMessage(write.WAITING[0], id="k3")], key="k3")
        assert (replay.replayed, replay.seq) == (True, 3)
        receipt = await memory.append(write.TALK, [UserMessage("The sixth is new.")])
        await memory.flushed()
    async with open_memory(url, redis="") as memory:
        history = await memory.history(write.TALK)
        assert await contents(memory, write.NEW) == [*write.BEGUN]
    assert [message.content for message in history.messages] == [*ALL_OF_THE_TALK, "The sixth is new."]
    assert [message.seq for message in history.messages] == [1, 2, 3, 4, 5, receipt.seq]
