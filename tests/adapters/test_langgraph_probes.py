"""What other savers get wrong, on every database, through both kinds of methods."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from tests.adapters.database import every_value
from tests.adapters.verbs import Open, Verbs, thread

ALIKE = [
    ("user-a", "User-A"),
    ("résumé", "resume"),
    ("tt", "tt "),
    ("straße", "strasse"),
    ("ｆull", "full"),
    ("x", "x\x00"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
async def test_threads_whose_names_look_alike_are_two(saver: Verbs, one: str, other: str) -> None:
    await saver.put(thread(one), {"x": "of the one"})
    assert await saver.get(thread(other)) is None
    await saver.put(thread(other), {"x": "of the other"})
    assert await saver.values(thread(one)) == {"x": "of the one"}
    assert await saver.values(thread(other)) == {"x": "of the other"}


async def test_deleting_a_thread_spares_the_one_that_looks_alike(saver: Verbs) -> None:
    for name in ("del-a", "Del-A"):
        await saver.put(thread(name), {"x": name})
    await saver.call("delete_thread", "del-a")
    assert await saver.get(thread("del-a")) is None
    assert await saver.values(thread("Del-A")) == {"x": "Del-A"}


async def test_channels_that_differ_in_case_are_two(saver: Verbs) -> None:
    await saver.put(thread("t"), {"Foo": "upper", "foo": "lower"})
    assert await saver.values(thread("t")) == {"Foo": "upper", "foo": "lower"}


@pytest.mark.parametrize("length", [200, 255, 256, 10_000])
async def test_a_thread_id_may_be_long(saver: Verbs, length: int) -> None:
    long, longer = "a" * length, "a" * (length + 1)
    stored = await saver.put(thread(long), {"x": 1})
    await saver.call("put_writes", stored, [("x", 2)], "task")
    await saver.put(thread(longer), {"x": 3})
    found = await saver.get(thread(long))
    assert found is not None
    assert found.config["configurable"]["thread_id"] == long
    assert found.checkpoint["channel_values"] == {"x": 1}
    assert found.pending_writes == [("task", "x", 2)]
    assert await saver.values(thread(longer)) == {"x": 3}


async def test_a_namespace_may_be_long(saver: Verbs) -> None:
    ns = "|".join(f"node_{depth}:2f0f3d2e-6e7b-4f7b-9d3e-000000000000" for depth in range(30))
    await saver.put(thread("t", ns), {"x": "deep"})
    assert await saver.values(thread("t", ns)) == {"x": "deep"}
    assert await saver.get(thread("t", ns + "|")) is None
    assert [one.config["configurable"]["checkpoint_ns"] for one in await saver.list(thread("t", ns))] == [ns]


async def test_pending_writes_come_in_the_order_in_which_a_run_applies_them(saver: Verbs) -> None:
    stored = await saver.put(thread("t"), {"x": 1})
    for task, path in (("c", "~__pregel_pull, b"), ("a", "~__pregel_pull, c"), ("b", "~__pregel_pull, a"), ("z", "")):
        await saver.call("put_writes", stored, [("x", f"{task}0"), ("x", f"{task}1")], task, path)
    found = await saver.get(thread("t"))
    assert found is not None
    assert [value for _, _, value in found.pending_writes or ()] == ["z0", "z1", "b0", "b1", "c0", "c1", "a0", "a1"]


def kept(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return state + [value for write in writes for value in write]


class DeltaState(TypedDict):
    items: Annotated[list[Any], DeltaChannel(kept, snapshot_frequency=4)]


def delta_graph(saver: Any) -> Any:
    graph = StateGraph(DeltaState)
    for name in ("one", "two", "three"):
        graph.add_node(name, lambda state, name=name: {"items": [f"{name} after {len(state['items'])}"]})
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    return graph.compile(checkpointer=saver)


async def run_delta(saver: Verbs, mode: str, turns: int, name: str = "delta") -> list[Any]:
    graph, live = delta_graph(saver.saver), []
    for turn in range(turns):
        config = thread(name)
        if mode == "async":
            live = (await graph.ainvoke({"items": [f"turn {turn}"]}, config))["items"]
        else:
            live = graph.invoke({"items": [f"turn {turn}"]}, config)["items"]
    return live


async def delta_state(saver: Verbs, mode: str, name: str = "delta") -> list[Any]:
    graph = delta_graph(saver.saver)
    state = await graph.aget_state(thread(name)) if mode == "async" else graph.get_state(thread(name))
    return state.values["items"]


async def test_parallel_nodes_that_write_to_a_delta_channel_reload_as_live(saver: Verbs, mode: str) -> None:
    live = await run_delta(saver, mode, 3)
    assert len(live) == 12
    assert await delta_state(saver, mode) == live


async def test_pruning_a_delta_thread_keeps_its_state(saver: Verbs, mode: str) -> None:
    live = await run_delta(saver, mode, 5)
    before = len(await saver.list(thread("delta")))
    await saver.call("prune", ["delta"], strategy="keep_latest")
    assert await delta_state(saver, mode) == live
    assert 1 <= len(await saver.list(thread("delta"))) < before
    assert (await run_delta(saver, mode, 1))[: len(live)] == live


async def test_copying_a_delta_thread_copies_its_state(saver: Verbs, mode: str) -> None:
    live = await run_delta(saver, mode, 3)
    await saver.call("copy_thread", "delta", "copied")
    await saver.call("delete_thread", "delta")
    assert await delta_state(saver, mode, "copied") == live


async def test_deleting_an_earlier_run_keeps_what_a_delta_thread_needs(saver: Verbs, mode: str) -> None:
    graph, runs, live = delta_graph(saver.saver), [], []
    for turn in range(3):
        config = thread("delta") | {"metadata": {"run_id": f"run-{turn}"}}
        runs.append(f"run-{turn}")
        given = {"items": [turn]}
        live = (await graph.ainvoke(given, config) if mode == "async" else graph.invoke(given, config))["items"]
    await saver.call("delete_for_runs", runs[:1])
    assert await delta_state(saver, mode) == live


async def test_nul_and_lone_surrogates_come_back_as_they_were(saver: Verbs) -> None:
    odd = "a\x00b \ud800 c \udfff \x1a d ?"
    values: dict[str, Any] = {
        "text": odd,
        "nested": {"key " + odd: [odd, {"deep": (odd,)}]},
        "others": {"queue": deque([odd]), "file": Path("cut \udcff.txt"), "sent": [Send("node", {"text": odd})]},
        "messages": [HumanMessage(odd, id="1"), AIMessage("plain?", id="2", additional_kwargs={"x": odd})],
    }
    config = thread("t " + odd, "ns " + odd)
    stored = await saver.put(config, values)
    sent = Send("node", {"text": odd})
    await saver.call("put_writes", stored, [("c " + odd, odd), ("__pregel_tasks", sent)], "task " + odd, "path " + odd)
    found = await saver.get(config)
    assert found is not None
    assert found.config == stored
    read = found.checkpoint["channel_values"]
    assert read["text"] == odd
    assert read["nested"] == {"key " + odd: [odd, {"deep": [odd]}]}
    assert read["messages"] == values["messages"]
    assert read["others"] == values["others"]
    assert found.pending_writes == [("task " + odd, "c " + odd, odd), ("task " + odd, "__pregel_tasks", sent)]


async def test_a_state_of_twenty_megabytes_comes_back(saver: Verbs) -> None:
    large = {"text": "x\x00" * 10_000_000, "blob": bytes(range(256)) * 8_000, "list": ["y" * 3_000_000, "z"]}
    stored = await saver.put(thread("t"), large)
    await saver.call("put_writes", stored, [("text", large["text"])], "task")
    found = await saver.get(thread("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == large
    assert found.pending_writes == [("task", "text", large["text"])]


KEY = b"0123456789abcdef"


class Sealing(JsonPlusSerializer):
    """An application's own, which encrypts without saying so."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self._sealed = EncryptedSerializer.from_pycryptodome_aes(
            JsonPlusSerializer(allowed_msgpack_modules=None), key=KEY
        )

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._sealed.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._sealed.loads_typed(data)


@pytest.mark.parametrize("own", [False, True])
async def test_encryption_covers_every_value_and_the_metadata(open_saver: Open, url: str, own: bool) -> None:
    known = EncryptedSerializer.from_pycryptodome_aes(JsonPlusSerializer(allowed_msgpack_modules=None), key=KEY)
    saver = await open_saver(serde=Sealing() if own else known)
    secret = "canary-5e1f"
    values = {"small": secret, "large": secret * 100, "messages": [HumanMessage(secret * 30)], "number": 7}
    metadata = {"source": "loop", "step": 1, "note": secret}
    stored = await saver.put(thread("t"), values, metadata=metadata)
    await saver.call("put_writes", stored, [("small", secret)], "task")
    found = await saver.get(thread("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert found.metadata["note"] == secret
    assert [one.metadata["note"] for one in await saver.list(thread("t"), filter={"note": secret})] == [secret]
    assert await saver.list(thread("t"), filter={"note": "another"}) == []
    assert not [value for value in await every_value(url) if secret.encode() in value]


async def test_without_encryption_the_scan_would_find_the_canary(saver: Verbs, url: str) -> None:
    await saver.put(thread("t"), {"small": "canary-77aa"})
    assert [value for value in await every_value(url) if b"canary-77aa" in value]


async def test_of_two_writes_to_a_special_channel_the_last_one_counts(saver: Verbs) -> None:
    config = await saver.put(thread("t"), {"x": 1})
    await saver.call("put_writes", config, [("__interrupt__", "first"), ("x", 1), ("__interrupt__", "last")], "task")
    found = await saver.get(config)
    assert found is not None
    assert sorted(found.pending_writes or [], key=str) == [("task", "__interrupt__", "last"), ("task", "x", 1)]
