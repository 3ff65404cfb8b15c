"""Memory as its users meet it, on servers: the same answers as on SQLite, and who opens an engine closes it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.contract.sql_statements import execute
from threadkeep import (
    ErasureProof,
    Memory,
    ModelResponse,
    Scope,
    Settings,
    SyncMemory,
    ToolResult,
    UserMessage,
    open_memory,
)
from threadkeep.errors import MissingExtra
from threadkeep.model import Reflection
from threadkeep.testing.drafts import new_scope

TALK = [
    UserMessage("Tôi bị dị ứng với đậu phộng"),
    ModelResponse("Tôi sẽ nhớ điều đó."),
    UserMessage("Jestem uczulony na orzeszki ziemne"),
    ModelResponse("Zapamiętam."),
    UserMessage("我對花生過敏"),
    ModelResponse("我會記住的。"),
    UserMessage("I would like a room in Łódź, by the sea"),
]
QUESTIONS = {
    "vi": ("dị ứng gì?", "đậu phộng"),
    "vi without marks": ("di ung dau phong", "đậu phộng"),
    "pl": ("orzeszki", "orzeszki"),
    "pl without marks": ("pokoj Lodz", "Łódź"),
    "zh": ("花生", "花生"),
}


async def _recalled(memory: Memory, scope: Scope, question: str) -> list[tuple[int, str, float]]:
    return [(hit.seq, hit.content, round(hit.score, 9)) for hit in (await memory.recall(scope, question)).hits]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.values(), ids=QUESTIONS.keys())
async def test_a_question_ranks_the_same_as_on_sqlite(sql_url: str, question: str, answer: str) -> None:
    scope = new_scope()
    words_only = Settings(embedder="none")  # vectors come when the worker has made them
    async with AsyncExitStack() as stack:
        memories = [
            await stack.enter_async_context(open_memory(url, settings=words_only)) for url in ("sqlite://", sql_url)
        ]
        for memory in memories:
            await memory.append(scope, TALK)
            await memory.append(scope.with_conversation("c2"), TALK[::-1])
            await memory.append(new_scope(), TALK)
        embedded, served = [await _recalled(memory, scope, question) for memory in memories]
    assert any(answer in content for _, content, _ in served[:3])
    assert served == embedded


async def test_the_whole_path_from_append_to_erasure(sql_url: str) -> None:
    scope = new_scope()
    async with open_memory(sql_url, settings=Settings()) as memory:
        events = [UserMessage("write to ann@example.com"), ToolResult("a table"), ModelResponse("Done.")]
        receipt = await memory.append(scope, events, key="k1")
        assert (receipt.status, receipt.seq, dict(receipt.refused)) == ("stored", 2, {"tool_result": 1})
        assert await memory.append(scope, events, key="k1") == receipt
        assert [m.content for m in (await memory.history(scope)).messages][1] == "Done."
        assert "ann@example.com" not in (await memory.recall(scope, "write")).text
        session = await memory.session(scope)
        assert session is not None
        assert len(session.messages) == 2
        proof = await memory.erase(scope.whole_user)
        assert (proof.stores["archive"].removed, proof.complete) == (2, True)
        assert (await memory.history(scope)).messages == ()


async def test_the_proof_says_what_the_server_keeps(sql_url: str) -> None:
    async with open_memory(sql_url, settings=Settings()) as memory:
        proof: ErasureProof = await memory.erase(new_scope().whole_user)
    assert any("log" in note and "backups" in note for note in proof.notes)
    assert proof.as_dict()["notes"] == list(proof.notes)


async def test_nothing_of_an_erased_user_is_left_in_any_table(own_url: str) -> None:
    scope = Scope("a shop nobody knows", "ann from Gdynia", "the talk about nuts")
    async with open_memory(own_url, settings=Settings()) as memory:
        await memory.append(scope, [UserMessage("xylophone", id="a telling id")], key="a telling key")
        await memory.erase(scope.whole_user)
    for table in ("tk_owners", "tk_conversations", "tk_messages", "tk_appends"):
        assert await execute(own_url, f"SELECT * FROM {table}") == []
    if not own_url.startswith("postgres"):
        assert await execute(own_url, "SELECT * FROM tk_words") == []


def test_the_synchronous_facade_works_on_a_server(sql_url: str) -> None:
    scope = new_scope()
    with SyncMemory(sql_url, settings=Settings()) as memory:
        memory.append(scope, [UserMessage("hello")])
        assert [m.content for m in memory.history(scope).messages] == ["hello"]


async def test_an_applications_own_engine_is_used_and_left_open(sql_url: str) -> None:
    """Whatever its isolation level; MySQL's own default would read from before our locks."""
    driver = "postgresql+asyncpg" if sql_url.startswith("postgres") else "mysql+asyncmy"
    engine = create_async_engine(driver + sql_url[sql_url.index("://") :], isolation_level="REPEATABLE READ")
    scope = new_scope()
    async with open_memory(engine=engine, settings=Settings()) as memory:
        assert (await memory.append(scope, TALK)).seq == len(TALK)
    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar() == 1
    await engine.dispose()


@pytest.fixture
def no_sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("threadkeep.compose.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy.ext.asyncio", None)


@pytest.mark.usefixtures("no_sqlalchemy")
@pytest.mark.parametrize(("scheme", "extra"), [("postgresql", "postgres"), ("mysql", "mysql"), ("mariadb", "mysql")])
async def test_without_its_extra_a_url_names_it(scheme: str, extra: str) -> None:
    with pytest.raises(MissingExtra, match=rf"threadkeep\[{extra}\]"):
        async with open_memory(f"{scheme}://ann:hunter2@127.0.0.1/memory", settings=Settings()):
            pass


@pytest.mark.parametrize("where", ["sqlite", "server"])
async def test_an_export_holds_what_was_thought_of_each_talk(sql_url: str, where: str) -> None:
    scope = new_scope()
    other = scope.with_conversation("of nobody's concern")
    async with open_memory("sqlite://" if where == "sqlite" else sql_url, settings=Settings()) as memory:
        first = (await memory.append(scope, [UserMessage("I am late"), ModelResponse("I see.")])).kept
        then = (await memory.append(scope, [UserMessage("Still"), ModelResponse("I know.")])).kept
        await memory.append(other, [UserMessage("Hello")])
        await memory.reflect(scope, Reflection("Late.", ("a train",)), first)
        await memory.reflect(scope, Reflection("Later; +48 601 234 567."), then)
        await memory.reflect(scope, Reflection("All of it."), [*first, *then], "rolling")
        found = {record.conversation: record.as_dict() async for record in memory.export(scope.whole_user)}
    assert [
        (one["summary"], one["causes"], one["evidence"], one["kind"])
        for one in found[scope.conversation or ""]["reflections"]
    ] == [
        ("Late.", ["a train"], list(first), "turn"),
        ("Later; [REDACTED:PHONE].", [], list(then), "turn"),
        ("All of it.", [], [*first, *then], "rolling"),
    ]
    assert found["of nobody's concern"]["reflections"] == []
