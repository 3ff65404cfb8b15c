"""All that is kept of a user, threads and sessions of frameworks included, is in their list, counts and export, and
nowhere once they are erased."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from agents import TResponseInputItem
from google.adk.events.event import Event
from google.genai import types
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import PutOp
from pydantic import BaseModel

from tests.adapters.test_langgraph_usage import context, entry
from tests.adapters.verbs import Verbs, thread, verbs_of
from threadkeep import ModelResponse, Scope, UserMessage, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.langgraph import ThreadkeepSaver, ThreadkeepStore
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.errors import InvalidInput
from threadkeep.memory import Memory
from threadkeep.model import Conversation
from threadkeep.settings import Settings


@pytest.fixture
def me(user: str) -> Scope:
    return Scope("shop", user)


@pytest.fixture
async def memory(url: str) -> AsyncIterator[Memory]:
    async with open_memory(url, settings=Settings()) as memory:
        yield memory


@asynccontextmanager
async def saver_of(url: str, me: Scope, **options: Any) -> AsyncGenerator[Verbs]:
    async with ThreadkeepSaver.from_url(url, tenant=me.tenant, user=me.user, settings=Settings(), **options) as saver:
        yield verbs_of(saver, "async")


async def exported(memory: Memory, scope: Scope | None) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(record.as_dict(), allow_nan=False)) async for record in memory.export(scope)]


async def listed(memory: Memory, me: Scope, size: int = 50) -> list[Conversation]:
    page = await memory.conversations(me, limit=size)
    found = [*page]
    while page.after is not None:
        page = await memory.conversations(me, page.after, size)
        assert len(page)
        found += page
    return found


async def test_a_thread_is_listed_counted_and_exported_until_it_is_erased(url: str, me: Scope, memory: Memory) -> None:
    async with saver_of(url, me) as saver:
        config = await saver.put(thread("t"), {"messages": [HumanMessage("I like tea")], "n": 1})
        await saver.put(config, {"messages": [HumanMessage("I like tea"), AIMessage("Noted.")], "n": 2})
    (one,) = await listed(memory, me)
    assert (one.conversation, one.kind, one.messages, one.queries, one.title) == ("t", "langgraph", 0, 1, "I like tea")
    for scope in (me, me.with_conversation("t")):
        stats = await memory.stats(scope)
        assert (stats.users, stats.conversations, stats.threads.count, stats.threads.queries) == (1, 0, 1, 1)
        assert stats.first_at is not None
        assert stats.last_at is not None
        assert stats.threads.duration_seconds == (stats.last_at - stats.first_at).total_seconds()
        (record,) = await exported(memory, scope)
        assert (record["kind"], record["conversation"], record["messages"]) == ("langgraph", "t", [])
        assert [one["content"] for one in record["thread"]["state"]["messages"]] == ["I like tea", "Noted."]
        newer, older = record["thread"]["checkpoints"]
        assert (newer["values"], older["values"]) == ({}, {"n": 1})
        assert record["thread"]["unread"] == []
    proof = await memory.erase(me)
    assert proof.complete
    await nothing_is_kept(memory, me)


async def nothing_is_kept(memory: Memory, me: Scope) -> None:
    assert await listed(memory, me) == []
    assert await exported(memory, me) == []
    stats = await memory.stats(me)
    assert (stats.users, stats.conversations, stats.threads.count, stats.sessions, stats.items) == (0, 0, 0, 0, 0)
    assert stats.first_at is None


async def test_what_was_asked_and_read_in_a_retrieval_conversation_is_counted(
    url: str, me: Scope, memory: Memory
) -> None:
    counts = {"queryCount": 4, "contextCount": 10, "cacheHits": 1, "documents": 2}
    read = [context("a", 3), context("b", 3)]
    state = {"queries": [entry("opening hours", 3)], "retrievedContexts": read, "counts": counts, "datasourceIds": []}
    async with saver_of(url, me) as saver:
        await saver.put(thread("asked"), state)
    (one,) = await listed(memory, me)
    assert (one.kind, one.queries) == ("retrieval", 4)
    threads = (await memory.stats(me.with_conversation("asked"))).threads
    assert (threads.queries, threads.contexts, threads.documents, threads.cache_hits) == (4, 10, 2, 1)
    told = threads.as_dict()
    assert (told["contexts_per_query"], told["cache_hit_rate"]) == (2.5, 0.25)
    (record,) = await exported(memory, me)
    assert record["kind"] == "retrieval"
    assert record["thread"]["state"]["queries"][0]["query"] == "opening hours"


async def test_sessions_of_agent_frameworks_are_kept_of_their_user(url: str, me: Scope, memory: Memory) -> None:
    async with ThreadkeepSessionService.from_url(url, tenant=me.tenant, settings=Settings()) as service:
        session = await service.create_session(
            app_name="shop", user_id=me.user, session_id="adk", state={"cart": ["tea"], "user:size": "M"}
        )
        await service.append_event(session, said("user", "Do you have tea?"))
        await service.create_session(app_name="shop", user_id=me.user, session_id="silent", state={"seen": True})
    items: list[TResponseInputItem] = [{"role": "user", "content": "What is new?"}]
    async with ThreadkeepSession("sdk", url, tenant=me.tenant, user=me.user, settings=Settings()) as sdk:
        await sdk.add_items(items)
    found = {one.conversation: one for one in await listed(memory, me)}
    assert {name: (one.kind, one.messages) for name, one in found.items()} == {
        "adk": ("adk", 1),
        "silent": ("adk", 0),
        "sdk": ("openai", 1),
    }
    stats = await memory.stats(me)
    assert (stats.users, stats.conversations, stats.sessions, stats.items) == (1, 2, 3, 1)
    records = {record.get("conversation") or record["kind"]: record for record in await exported(memory, me)}
    assert [*records] == ["adk", "sdk", "silent", "state"]
    assert records["adk"]["session"]["state"] == {"cart": ["tea"]}
    assert [event["event"]["author"] for event in records["adk"]["session"]["events"]] == ["user"]
    assert [message["content"] for message in records["adk"]["messages"]] == ["Do you have tea?"]
    assert records["silent"]["session"]["state"] == {"seen": True}
    assert (records["sdk"]["kind"], records["sdk"]["messages"][0]["content"]) == ("openai", "What is new?")
    assert (records["state"]["key"], records["state"]["value"]) == ("size", "M")
    assert (await memory.erase(me)).complete
    await nothing_is_kept(memory, me)


def said(author: str, text: str) -> Event:
    role = "user" if author == "user" else "model"
    return Event(author=author, invocation_id="i", content=types.Content(role=role, parts=[types.Part(text=text)]))


async def test_items_of_a_store_are_kept_of_their_user(url: str, me: Scope, memory: Memory) -> None:
    async with ThreadkeepStore.from_url(url, tenant=me.tenant, user=me.user, settings=Settings()) as store:
        await store.aput(("likes",), "drink", {"what": "tea", "share": math.nan})
    async with ThreadkeepStore.from_url(url, tenant=me.tenant, user_label=0, settings=Settings()) as shared:
        await shared.abatch([PutOp((me.user,), "size", {"is": "M"}), PutOp((f"{me.user}2",), "size", {"is": "L"})])
    assert (await memory.stats(me)).items == 2
    records = await exported(memory, me)
    found = {record["key"]: (record["kind"], record["namespace"], record["value"]) for record in records}
    assert found == {
        "drink": ("item", ["likes"], {"what": "tea", "share": "nan"}),
        "size": ("item", [me.user], {"is": "M"}),
    }
    assert await listed(memory, me) == []
    assert (await memory.erase(me)).complete
    await nothing_is_kept(memory, me)
    assert (await memory.stats(Scope(me.tenant, f"{me.user}2"))).items == 1


async def test_a_conversation_of_several_owners_is_one(url: str, me: Scope, memory: Memory) -> None:
    both = me.with_conversation("both")
    await memory.append(both, [UserMessage("hello"), ModelResponse("hi")])
    await memory.rename(both, "Greeting")
    async with saver_of(url, me) as saver:
        await saver.put(thread("both"), {"messages": [HumanMessage("hello")]})
    (one,) = await listed(memory, me)
    assert (one.kind, one.title, one.messages, one.queries) == ("langgraph", "Greeting", 2, 1)
    (record,) = await exported(memory, me)
    assert [message["content"] for message in record["messages"]] == ["hello", "hi"]
    assert [message["content"] for message in record["thread"]["state"]["messages"]] == ["hello"]
    assert (await memory.erase(both)).complete
    await nothing_is_kept(memory, me)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_pages_have_every_conversation_once_latest_first(url: str, me: Scope, memory: Memory, size: int) -> None:
    wanted: list[str] = []
    async with saver_of(url, me) as saver:
        for number in range(4):
            await memory.append(me.with_conversation(f"c{number}"), [UserMessage("hello")])
            await saver.put(thread(f"t{number}"), {"messages": [HumanMessage("hello")]})
            wanted += [f"c{number}", f"t{number}"]
        for name in ("c1", "c3"):  # said there first, and then a thread
            await saver.put(thread(name), {"messages": [HumanMessage("hello")]})
            wanted = [one for one in wanted if one != name] + [name]
        await memory.append(me.with_conversation("t0"), [UserMessage("once more")])
        wanted = [one for one in wanted if one != "t0"] + ["t0"]
    assert [one.conversation for one in await listed(memory, me, size)] == wanted[::-1]


@pytest.mark.parametrize("cursor", ["", "5", "1.2_x_", "__1.zz", "_9.00_", "____"])
async def test_a_cursor_that_no_list_has_made_is_refused(memory: Memory, me: Scope, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="after"):
        await memory.conversations(me, cursor)


async def test_ids_compare_byte_for_byte(url: str, memory: Memory) -> None:
    name = f"ann-{uuid4()}"
    mine = Scope("shop", name)
    others = [Scope("Shop", name), Scope("shop", name.upper()), Scope("shop", f"{name} "), Scope("shop", f"{name}é")]
    for one in (mine, *others):
        async with saver_of(url, one) as saver:
            await saver.put(thread("T"), {"messages": [HumanMessage("hello")]})
        async with ThreadkeepStore.from_url(url, tenant=one.tenant, user=one.user, settings=Settings()) as store:
            await store.aput(("likes",), "drink", {"of": one.user})
        service = ThreadkeepSessionService.from_url(url, tenant=one.tenant, settings=Settings())
        async with service:
            await service.create_session(app_name="a", user_id=one.user, session_id="S", state={"user:x": 1})
    assert await memory.stats(mine.with_conversation("t")) == await memory.stats(mine.with_conversation("nothing"))
    assert (await memory.erase(mine)).complete
    await nothing_is_kept(memory, mine)
    for one in others:
        assert {listed.conversation for listed in await listed(memory, one)} == {"T", "S"}
        stats = await memory.stats(one)
        assert (stats.threads.count, stats.sessions, stats.items) == (1, 1, 2)
        found = await exported(memory, one)
        assert {(record["tenant"], record["user"]) for record in found} == {(one.tenant, one.user)}
        assert len(found) == 4


class Order(BaseModel):
    """A class of the application's own."""

    dish: str


async def test_a_class_of_the_application_is_exported_as_its_bare_fields(url: str, me: Scope, memory: Memory) -> None:
    async with saver_of(url, me) as saver:
        await saver.put(thread("t"), {"order": Order(dish="soup"), "raw": b"\xff", "share": math.inf})
    (record,) = await exported(memory, me)
    assert record["thread"]["state"] == {"order": {"dish": "soup"}, "raw": "_w==", "share": "inf"}
    assert record["thread"]["unread"] == []


async def test_what_another_key_has_encrypted_is_named_and_not_shown(url: str, me: Scope, memory: Memory) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    async with saver_of(url, me, serde=serde) as saver:
        await saver.put(thread("t"), {"messages": [HumanMessage("secret")]})
    (record,) = await exported(memory, me)
    assert record["thread"]["state"] == {}
    assert any("'t'" in one for one in record["thread"]["unread"])
    assert "secret" not in json.dumps(record)


async def test_what_is_in_flight_stays_secret(url: str, me: Scope, memory: Memory) -> None:
    async with saver_of(url, me, tool_traffic="turn") as saver:
        call = ToolCall(name="look", args={"for": "a secret"}, id="1", type="tool_call")
        traffic = [AIMessage("", tool_calls=[call]), ToolMessage("the secret answer", tool_call_id="1")]
        await saver.put(thread("t"), {"messages": [HumanMessage("hello"), *traffic]})
        (record,) = await exported(memory, me)
        assert record["thread"]["in_flight"] > 0
        assert "secret" not in json.dumps(record)
        assert record["thread"]["unread"] == []


async def test_the_whole_store_is_counted_and_exported_with_threads(url: str, me: Scope, memory: Memory) -> None:
    before = await memory.stats()
    async with saver_of(url, me) as saver:
        await saver.put(thread("t"), {"messages": [HumanMessage("hello")]})
    async with ThreadkeepSessionService.from_url(url, tenant=me.tenant, settings=Settings()) as service:
        await service.create_session(app_name="a", user_id=f"{me.user}2", session_id="s", state={"user:x": 1})
    after = await memory.stats()
    assert after.users - before.users == 2
    assert after.threads.count - before.threads.count == 1
    assert (after.sessions - before.sessions, after.items - before.items) == (1, 1)
    found = [one for one in await exported(memory, None) if one["user"].startswith(me.user)]
    assert [one["kind"] for one in found] == ["langgraph", "adk", "state"]


async def test_a_hundred_threads_cost_no_more_queries_than_one(tmp_path: Any, me: Scope) -> None:
    url = f"sqlite:///{tmp_path / 'many.db'}"

    async def asked(memory: Memory) -> tuple[int, int]:
        counted: list[str] = []
        store: Any = memory
        database = store._stores.keepers["checkpoints"]._database
        rows = database.rows

        async def counting(statement: str, values: Any) -> Any:
            counted.append(statement)
            return await rows(statement, values)

        database.rows = counting
        await memory.conversations(me)
        await memory.stats(me)
        listing = len(counted)
        assert len([one async for one in memory.export(me)])
        database.rows = rows
        return listing, len(counted) - listing

    async with saver_of(url, me) as saver, open_memory(url, settings=Settings()) as memory:
        await saver.put(thread("t"), {"n": 1})
        one = await asked(memory)
        for number in range(19):
            await saver.put(thread(f"t{number}"), {"n": number})
        assert await asked(memory) == one
