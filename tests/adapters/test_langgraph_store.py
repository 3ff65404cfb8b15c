"""LangGraph's store: what upstream's own stores promise, on every database, by both kinds of methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from tests.adapters.database import every_value, rows
from threadkeep import Scope, open_memory
from threadkeep.adapters.langgraph import ThreadkeepStore
from threadkeep.errors import InvalidInput, InvalidScope, InvalidSetting, MemoryClosed, TooLarge
from threadkeep.settings import Settings

KEY = b"0123456789abcdef"


class Calls:
    """`await store.put(…)`, whichever of the two is called."""

    def __init__(self, store: ThreadkeepStore, mode: str) -> None:
        self.store = store
        self._mode = mode

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self._mode == "async":
                return await getattr(self.store, f"a{verb}")(*args, **kwargs)
            return getattr(self.store, verb)(*args, **kwargs)

        return call


Opening = Callable[..., Awaitable[Calls]]


@pytest.fixture
async def open_store(url: str, mode: str, user: str) -> AsyncIterator[Opening]:
    opened: list[ThreadkeepStore] = []

    async def open_(**options: Any) -> Calls:
        options = {"user": user, "settings": Settings()} | options
        store = await asyncio.to_thread(lambda: ThreadkeepStore.from_url_sync(url, **options))
        opened.append(store)
        return Calls(store, mode)

    yield open_
    for store in opened:
        await asyncio.to_thread(store.close)


@pytest.fixture
async def store(open_store: Opening) -> Calls:
    return await open_store()


class Letters:
    """An embedder that counts letters: its vectors can be foreseen, and it remembers what it was given."""

    name = "letters"
    dimensions = 26

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        counts = np.array([[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        return counts / np.where(norms == 0, 1, norms)

    async def close(self) -> None:
        pass


async def keys(store: Calls, *prefix: str, **asked: Any) -> list[str]:
    return sorted(item.key for item in await store.search(prefix, **({"limit": 100} | asked)))


async def test_an_item_comes_back_as_it_was_put(store: Calls) -> None:
    value = {"text": "déjà \x00 \ud800", "deep": {"list": [1, 2.5, None, True]}, "größe": "花"}
    before = datetime.now(UTC) - timedelta(seconds=1)
    await store.put(("memories", "u"), "k 花/'", value)
    item = await store.get(("memories", "u"), "k 花/'")
    assert (item.value, item.key, item.namespace) == (value, "k 花/'", ("memories", "u"))
    assert before < item.created_at == item.updated_at
    await store.put(("memories", "u"), "k 花/'", {"now": 1})
    again = await store.get(("memories", "u"), "k 花/'")
    assert again.value == {"now": 1}
    assert again.created_at == item.created_at
    assert again.updated_at > item.updated_at
    await store.delete(("memories", "u"), "k 花/'")
    assert await store.get(("memories", "u"), "k 花/'") is None


async def test_names_and_namespaces_compare_byte_for_byte(store: Calls) -> None:
    places = [("a",), ("A",), ("a", "b"), ("ab",), ("a ",), ("é",), ("e",), ("a\x02", "b"), ("a\x01", "b")]
    for number, place in enumerate(places):
        for name in ("k", "K", "k "):
            await store.put(place, name, {"n": number, "name": name})
    for number, place in enumerate(places):
        for name in ("k", "K", "k "):
            assert (await store.get(place, name)).value == {"n": number, "name": name}
    assert len(await store.search(("a",), limit=100)) == 6
    assert len(await store.search((), limit=100)) == 27
    assert await store.list_namespaces() == sorted(places)


async def test_a_long_namespace_and_a_long_name_are_found(store: Calls) -> None:
    place = ("x" * 400, "y" * 400)
    await store.put((*place, "one"), "n" * 5_000, {"n": 1})
    await store.put(("x" * 400, "z" * 400, "one"), "k", {"n": 2})
    assert [item.value for item in await store.search(place)] == [{"n": 1}]
    assert (await store.get((*place, "one"), "n" * 5_000)).value == {"n": 1}
    assert await store.list_namespaces(prefix=place) == [(*place, "one")]


async def test_a_batch_reads_what_was_there_before_and_keeps_the_last_of_two_puts(store: Calls) -> None:
    await store.put(("n",), "a", {"v": 1})
    results = await store.batch(
        [
            PutOp(("n",), "a", {"v": 2}),
            GetOp(("n",), "a"),
            PutOp(("n",), "b", {"v": 3}),
            PutOp(("n",), "b", {"v": 4}),
            SearchOp(("n",)),
            ListNamespacesOp(),
            GetOp(("n",), "missing"),
        ]
    )
    assert results[0] is results[2] is results[3] is results[6] is None
    assert results[1].value == {"v": 1}
    assert [item.value for item in results[4]] == [{"v": 1}]
    assert results[5] == [("n",)]
    assert {item.key: item.value["v"] for item in await store.search(("n",))} == {"a": 2, "b": 4}


async def test_a_batch_that_fails_stores_nothing(store: Calls) -> None:
    with pytest.raises(InvalidInput):
        await store.batch([PutOp(("n",), "a", {"v": 1}), PutOp(("n",), "b", {"v": object()})])
    assert await store.search(("n",)) == []


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"kind": "x"}, {"a", "b"}),
    ({"kind": {"$eq": "x"}}, {"a", "b"}),
    ({"kind": {"$ne": "x"}}, {"c", "d", "large"}),
    ({"n": {"$gt": 1}}, {"b", "c", "large"}),
    ({"n": {"$gte": 1, "$lt": 3}}, {"a", "b"}),
    ({"n": {"$lte": 2}}, {"a", "b"}),
    ({"kind": "x", "n": 2}, {"b"}),
    ({"deep": {"tag": "t"}}, {"c"}),
    ({"list": [1, 2]}, {"d"}),
    ({"n": None}, {"d"}),
    ({"n": 2.0}, {"b"}),
    ({"missing": "x"}, set()),
    ({"n": {"$lt": 10**400}}, {"a", "b", "c", "large"}),
    ({"n": {"$gt": 2**53}}, {"large"}),
    ({"n": {"$lte": 2**53}}, {"a", "b", "c"}),
    ({"deep": {1: "one"}}, {"large"}),
    ({"kind') OR 1=1 --": "x"}, set()),
    ({"'; DROP TABLE tk_store_items; --": {"$eq": "'"}}, set()),
]


@pytest.mark.parametrize(("asked", "expected"), FILTERS, ids=[str(number) for number in range(len(FILTERS))])
async def test_filters_let_through_what_they_name(store: Calls, asked: dict[str, Any], expected: set[str]) -> None:
    await store.put(("f",), "a", {"kind": "x", "n": 1})
    await store.put(("f",), "b", {"kind": "x", "n": 2})
    await store.put(("f", "below"), "c", {"kind": "y", "n": 3, "deep": {"tag": "t", "other": 1}})
    await store.put(("f",), "d", {"kind": "z", "list": [1, 2]})
    await store.put(("f",), "large", {"kind": "w", "n": 2**53 + 1, "deep": {1: "one"}})
    assert set(await keys(store, "f", filter=asked)) == expected
    assert await keys(store, "f") == ["a", "b", "c", "d", "large"]


async def test_a_filter_looks_past_the_first_page(store: Calls) -> None:
    await store.batch([PutOp(("many",), f"{n:04}", {"n": n, "odd": n % 2 == 1, "deep": {"n": n}}) for n in range(450)])
    assert len(await store.search(("many",), filter={"odd": True}, limit=1_000)) == 225
    assert len(await store.search(("many",), filter={"deep": {"n": {"$gte": 440}}}, limit=1_000)) == 10
    pages = [await store.search(("many",), filter={"odd": True}, limit=100, offset=start) for start in (0, 100, 200)]
    assert [len(page) for page in pages] == [100, 100, 25]
    assert len({item.key for page in pages for item in page}) == 225
    plain = [await store.search(("many",), limit=200, offset=start) for start in (0, 200, 400)]
    assert len({item.key for page in plain for item in page}) == 450


async def test_the_latest_change_comes_first(store: Calls) -> None:
    for key in ("a", "b", "c"):
        await store.put(("n",), key, {})
    await store.put(("n",), "a", {"again": True})
    assert [item.key for item in await store.search(("n",))] == ["a", "c", "b"]


async def test_namespaces_are_listed_by_prefix_suffix_wildcard_and_depth(store: Calls) -> None:
    places = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "x", "c"), ("q", "b", "c"), ("a",)]
    for place in places:
        await store.put(place, "k", {"v": 1})
    assert await store.list_namespaces() == sorted(places)
    assert await store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d", "e")]
    assert await store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c"), ("q", "b", "c")]
    assert await store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert await store.list_namespaces(prefix=("*", "b"), suffix=("*", "c")) == [("a", "b", "c"), ("q", "b", "c")]
    assert await store.list_namespaces(max_depth=2) == [("a",), ("a", "b"), ("a", "x"), ("q", "b")]
    assert await store.list_namespaces(limit=2, offset=1) == sorted(places)[1:3]
    for place in places:
        await store.delete(place, "k")
    assert await store.list_namespaces() == []


async def test_what_has_expired_is_seen_by_nobody_and_swept(open_store: Opening, url: str, user: str) -> None:
    store = await open_store(ttl={"default_ttl": 60.0})
    await store.put(("t",), "short", {"v": 1}, ttl=0.000_001)
    await store.put(("t",), "default", {"v": 1})
    await store.put(("t",), "long", {"v": 1}, ttl=None)
    assert await store.get(("t",), "short") is None
    assert await keys(store, "t") == ["default", "long"]
    ends = dict(await rows(url, f"SELECT name, ttl_minutes FROM tk_store_items WHERE user_id = '{user}'"))
    assert {bytes(name): minutes for name, minutes in ends.items()} == {b"short": 1e-6, b"default": 60.0, b"long": None}
    assert await store.sweep_ttl() >= 1
    assert len(await rows(url, f"SELECT 1 FROM tk_store_items WHERE user_id = '{user}'")) == 2
    await store.put(("t",), "short", {"v": 2})
    assert (await store.get(("t",), "short")).value == {"v": 2}


async def expires_at(url: str, user: str) -> int:
    return int(str((await rows(url, f"SELECT expires_at FROM tk_store_items WHERE user_id = '{user}'"))[0][0]))


async def test_reading_begins_the_time_anew_unless_told_not_to(store: Calls, url: str, user: str) -> None:
    await store.put(("t",), "k", {"v": 1}, ttl=10)
    first = await expires_at(url, user)
    await store.get(("t",), "k", refresh_ttl=False)
    await store.search(("t",), refresh_ttl=False)
    assert await expires_at(url, user) == first
    await store.get(("t",), "k")
    second = await expires_at(url, user)
    await store.search(("t",), refresh_ttl=True)
    assert first < second < await expires_at(url, user)


async def until_swept(url: str, user: str) -> None:
    async with asyncio.timeout(20):
        while await rows(url, f"SELECT 1 FROM tk_store_items WHERE user_id = '{user}'"):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
async def test_the_sweeper_runs_until_it_is_stopped(store: Calls, url: str, user: str) -> None:
    await store.put(("t",), "k", {"v": 1}, ttl=0.000_001)
    running = store.store.start_ttl_sweeper(sweep_interval_minutes=0.001)
    assert store.store.start_ttl_sweeper() is running
    await until_swept(url, user)
    assert store.store.stop_ttl_sweeper(timeout=20)
    assert running.done()
    assert store.store.stop_ttl_sweeper()


async def test_a_store_that_is_opened_asynchronously_is_swept_as_langgraphs_are(url: str, user: str) -> None:
    async with ThreadkeepStore.from_url(url, user=user, settings=Settings(), ttl={"default_ttl": 0.000_001}) as store:
        await store.aput(("t",), "k", {"v": 1})
        assert await store.sweep_ttl() >= 1
        assert not await rows(url, f"SELECT 1 FROM tk_store_items WHERE user_id = '{user}'")
        await store.aput(("t",), "k", {"v": 1})
        running = await store.start_ttl_sweeper(sweep_interval_minutes=0.001)
        await until_swept(url, user)
        assert await store.stop_ttl_sweeper(timeout=20)
        assert await running is None
        assert await store.stop_ttl_sweeper()


async def test_a_question_finds_what_is_nearest_first(open_store: Opening) -> None:
    store = await open_store(embedder=Letters(), fields=["text", "tags[*]"])
    await store.put(("v",), "abc", {"text": "abc abc", "tags": []})
    await store.put(("v",), "xyz", {"text": "xyz", "tags": ["ab", "qqq"]})
    await store.put(("v", "below"), "q", {"text": "qqqq"})
    await store.put(("v",), "none", {"text": "abc"}, index=False)
    await store.put(("v",), "title", {"text": "zzz", "title": "abc"}, index=["title"])
    found = await store.search(("v",), query="abc", limit=10)
    assert {item.key for item in found[:2]} == {"abc", "title"}
    assert [item.key for item in found[2:]] == ["xyz", "q", "none"]
    scores = {item.key: item.score for item in found}
    assert scores["abc"] == pytest.approx(1)
    assert scores["title"] == pytest.approx(1)
    assert scores["xyz"] == pytest.approx(2 / (2**0.5 * 3**0.5))
    assert scores["q"] == 0
    assert scores["none"] is None
    assert {item.key for item in await store.search(("v",), query="qqq", limit=2)} == {"xyz", "q"}
    assert {item.key for item in await store.search(("v",), query="q", filter={"text": "xyz"})} == {"xyz"}
    pages = [(await store.search(("v",), query="abc", limit=2, offset=start)) for start in (0, 2, 4)]
    assert [item.key for page in pages for item in page] == [item.key for item in found]
    await store.put(("v",), "abc", {"text": "zzz"})
    assert [item.key for item in await store.search(("v",), query="abc", limit=1)] == ["title"]


async def test_an_embedder_is_given_redacted_text_only(open_store: Opening) -> None:
    letters = Letters()
    store = await open_store(embedder=letters)
    await store.put(("v",), "k", {"text": "write to ann@example.org"})
    await store.search(("v",), query="who is ann@example.org")
    assert letters.seen
    assert not [text for text in letters.seen if "example.org" in text]
    assert (await store.get(("v",), "k")).value == {"text": "write to ann@example.org"}


async def test_vectors_of_another_model_are_not_compared(open_store: Opening) -> None:
    other = Letters()
    other.name = "letters-2"
    await (await open_store(embedder=Letters())).put(("v",), "k", {"text": "abc"})
    found = await (await open_store(embedder=other)).search(("v",), query="abc")
    assert [(item.key, item.score) for item in found] == [("k", None)]


async def test_langgraphs_own_form_of_the_index_is_understood(open_store: Opening) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]

    index = {"dims": 2, "embed": embed, "fields": ["text"]}
    store = await open_store(index=index)
    assert store.store.index_config == index, "where LangGraph's own stores tell it"
    await store.put(("v",), "a", {"text": "aaa"})
    await store.put(("v",), "b", {"text": "bbb"})
    assert [item.key for item in await store.search(("v",), query="bb")] == ["b", "a"]


async def test_the_offline_embedder_can_be_named(open_store: Opening) -> None:
    pytest.importorskip("wordllama")
    store = await open_store(embedder="offline", fields=["text"])
    await store.put(("v",), "nuts", {"text": "She is allergic to peanuts."})
    await store.put(("v",), "car", {"text": "The car needs a new gearbox."})
    assert [item.key for item in await store.search(("v",), query="food allergies", limit=1)] == ["nuts"]


async def test_two_users_and_two_tenants_share_nothing(open_store: Opening, user: str) -> None:
    mine, theirs, elsewhere = [
        await open_store(user=name, tenant=tenant) for name, tenant in ((user, "t"), (f"{user}2", "t"), (user, "t2"))
    ]
    shared = await open_store(user=None, tenant=f"t-{user}")
    await mine.put(("n",), "k", {"v": "mine"})
    for other in (theirs, elsewhere, shared):
        assert await other.get(("n",), "k") is None
        assert await other.search(()) == []
        assert await other.list_namespaces() == []
        await other.delete(("n",), "k")
    assert (await mine.get(("n",), "k")).value == {"v": "mine"}


async def test_erasing_a_user_erases_their_items(open_store: Opening, url: str, user: str) -> None:
    tenant = f"t-{user}"
    own = await open_store(tenant=tenant)
    shared = await open_store(user=None, tenant=tenant, user_label=1)
    await own.put(("n",), "k", {"v": 1})
    await shared.put(("memories", user), "k", {"v": 1})
    await shared.put(("memories", f"{user}2"), "k", {"v": 1})
    await shared.put((user,), "k", {"v": "names nobody"})
    async with open_memory(url, settings=Settings()) as memory:
        proof = await memory.erase(Scope(tenant, user))
    assert proof.complete
    assert proof.stores["items"].removed == 2
    assert await own.search(()) == []
    assert await shared.list_namespaces() == sorted([("memories", f"{user}2"), (user,)])


async def test_encryption_covers_values_and_filters_still_work(open_store: Opening, url: str) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
    store = await open_store(serde=serde)
    await store.put(("n",), "a", {"kind": "canary-in-the-store", "n": 1})
    await store.put(("n",), "b", {"kind": "other", "n": 2})
    assert not [one for one in await every_value(url) if b"canary-in-the-store" in one]
    assert await keys(store, "n", filter={"kind": "canary-in-the-store"}) == ["a"]
    assert await keys(store, "n", filter={"n": {"$gt": 1}}) == ["b"]


async def test_bad_input_is_told(open_store: Opening, user: str) -> None:
    store = await open_store(max_value_bytes=1_000)
    for namespace in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            await store.put(namespace, "k", {})
    with pytest.raises(InvalidInput, match="namespace"):
        await store.batch([PutOp("ab", "k", {})])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ttl"):
        await store.put(("n",), "k", {}, ttl=-1)
    with pytest.raises(InvalidInput, match="operator"):
        await store.search(("n",), filter={"n": {"$regex": ".*"}})
    with pytest.raises(InvalidInput, match="operators and fields"):
        await store.search(("n",), filter={"n": {"$gt": 1, "deep": 2}})
    with pytest.raises(InvalidInput, match="filter"):
        await store.search(("n",), filter=["n"])
    for field in ("limit", "offset", "max_depth"):
        with pytest.raises(InvalidInput, match=field):
            await store.batch([ListNamespacesOp(**{field: -1})])
    with pytest.raises(InvalidInput, match="limit"):
        await store.search(("n",), limit=-1)
    with pytest.raises(InvalidInput, match="value"):
        await store.batch([PutOp(("n",), "k", "text")])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ops"):
        await store.batch(["get"])
    with pytest.raises(TooLarge):
        await store.put(("n",), "k", {"v": "x" * 2_000})
    with pytest.raises(InvalidSetting):
        await open_store(user=user, user_label=1)
    with pytest.raises(InvalidSetting):
        await open_store(embedder=object())
    with pytest.raises(InvalidScope):
        await (await open_store(user=None, user_label=0)).put(("\x07",), "k", {})
    assert await store.search(()) == []


@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_a_graph_remembers_in_it(open_store: Opening) -> None:
    store = await open_store()

    async def remember(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        said = str(state["messages"][-1].content)
        await store.aput(("memories",), said, {"text": said})
        return {"messages": [("ai", str(len(await store.asearch(("memories",)))))]}

    graph = StateGraph(MessagesState)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    compiled = graph.compile(store=store.store)
    for number, said in enumerate(("one", "two"), 1):
        answer = await compiled.ainvoke({"messages": [("user", said)]})
        assert answer["messages"][-1].content == str(number)


async def test_a_closed_store_says_so(url: str, user: str) -> None:
    async with ThreadkeepStore.from_url(url, user=user, settings=Settings()) as store:
        await store.aput(("n",), "k", {"v": 1})
    with pytest.raises(MemoryClosed):
        await store.aget(("n",), "k")
    with pytest.raises(MemoryClosed):
        store.get(("n",), "k")
