"""What a checkpoint costs: each list item is stored once, whatever becomes of the list."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from tests.adapters.database import count, rows
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.adapters.langgraph.codec import packed, unpacked
from threadkeep.adapters.langgraph.pages import unsqueezed
from threadkeep.adapters.langgraph.session import Limits

WORDS = [f"word{number}" for number in range(500)]


def said(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


async def stored_bytes(url: str, user: str) -> int:
    sizes = {
        "conversation_checkpoints": "length(checkpoint_blob) + length(metadata_blob)",
        "tk_checkpoint_items": "length(data)",
        "tk_checkpoint_writes": "length(data)",
    }
    theirs = f"thread_key IN (SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}')"
    found = [
        await rows(url, f"SELECT coalesce(sum({size}), 0) FROM {table} WHERE {theirs}") for table, size in sizes.items()
    ]
    return sum(int(str(one[0][0])) for one in found)


def chat_graph(saver: Any, answer: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    return graph.compile(checkpointer=saver)


async def test_a_state_that_repeats_itself_takes_a_fraction_of_its_bytes(saver: Verbs, url: str, user: str) -> None:
    stored = await saver.put(thread("t"), {"passages": "Retrieval finds, generation writes. " * 2_000})
    assert await stored_bytes(url, user) < 36 * 2_000 / 20
    assert (await saver.values(stored))["passages"].count("generation") == 2_000


async def test_the_bytes_of_a_turn_do_not_grow_with_the_talk(saver: Verbs, url: str, user: str, mode: str) -> None:
    rng = random.Random(1)
    graph = chat_graph(saver.saver, lambda state: {"messages": [AIMessage(said(rng, 90))]})
    before, costs = await stored_bytes(url, user), []
    for _ in range(60):
        given, config = {"messages": [HumanMessage(said(rng, 30))]}, thread("t")
        if mode == "async":
            await graph.ainvoke(given, config, durability="sync")
        else:
            graph.invoke(given, config, durability="sync")
        now = await stored_bytes(url, user)
        costs.append(now - before)
        before = now
    early, late = sum(costs[10:20]), sum(costs[-10:])
    assert late < 1.1 * early


def messages(count: int) -> list[BaseMessage]:
    return [HumanMessage(f"message {number} " + "x" * 200, id=str(number)) for number in range(count)]


def shorten(state: list[BaseMessage]) -> list[BaseMessage]:
    return state[2:]


def replace_one(state: list[BaseMessage]) -> list[BaseMessage]:
    return [*state[:50], HumanMessage("another", id="50"), *state[51:]]


def remove_one(state: list[BaseMessage]) -> list[BaseMessage]:
    return state[:70] + state[71:]


def insert_one(state: list[BaseMessage]) -> list[BaseMessage]:
    return [*state[:30], HumanMessage("between", id="new"), *state[30:]]


def swap_the_last(state: list[BaseMessage]) -> list[BaseMessage]:
    return [*state[:-1], HumanMessage("instead", id="last")]


@pytest.mark.parametrize("change", [shorten, replace_one, remove_one, insert_one, swap_the_last])
async def test_a_changed_list_refers_to_all_that_stayed(open_saver: Open, url: str, user: str, change: Any) -> None:
    saver = await open_saver()
    state = messages(100)
    config = await saver.put(thread("t"), {"messages": state})
    before = await stored_bytes(url, user)
    for _ in range(3):
        state = [*change(state), HumanMessage("and more", id=f"end{len(state)}")]
        config = await saver.put(config, {"messages": state})
    assert await stored_bytes(url, user) - before < 6_000
    assert (await saver.values(thread("t")))["messages"] == state
    other = await open_saver()  # which has nothing cached
    assert (await other.values(thread("t")))["messages"] == state
    assert [len(one.checkpoint["channel_values"]["messages"]) for one in await other.list(thread("t"))][-1] == 100


@pytest.mark.parametrize("cached", [True, False])
async def test_what_comes_after_a_removed_end_is_not_mistaken_for_it(open_saver: Open, cached: bool) -> None:
    """An answer is taken back, and another given: the page that was stored holds the first one still."""
    writer = await open_saver()
    state = messages(4)
    config = first = await writer.put(thread("t"), {"messages": state})
    for more in ([], [HumanMessage("instead", id="new")], [AIMessage("and on", id="newer")]):
        writer = writer if cached else await open_saver()
        config = await writer.put(config, {"messages": [*state[:3], *more]})
        assert (await (await open_saver()).values(config))["messages"] == [*state[:3], *more]
    assert (await (await open_saver()).values(first))["messages"] == state


@pytest.mark.parametrize("cache_bytes", [64 << 20, 1])
async def test_every_version_of_a_list_comes_back_whatever_became_of_it(open_saver: Open, cache_bytes: int) -> None:
    rng = random.Random(7)
    writer = await open_saver(limits=Limits(cache_bytes=cache_bytes))
    state: list[BaseMessage] = messages(6)
    config, stored = thread("t"), []
    for number in range(40):
        cut = rng.randrange(len(state) // 2, len(state) + 1)
        new = [HumanMessage(said(rng, 20), id=f"{number}-{n}") for n in range(rng.randrange(1 if cut == 0 else 0, 4))]
        state = [*state[:cut], *new]
        config = await writer.put(
            config if rng.random() < 0.8 else rng.choice([c for c, _ in stored] or [config]), {"messages": state}
        )
        stored.append((config, state))
    reader = await open_saver()
    for config, expected in stored:
        assert (await reader.values(config))["messages"] == expected


async def test_a_state_larger_than_the_cache_is_read_again_and_again(open_saver: Open) -> None:
    """What is fetched pushes out what was here when it was asked for."""
    state = {channel: messages(3) for channel in ("one", "two", "three")}
    config = await (await open_saver()).put(thread("t"), state)
    reader = await open_saver(limits=Limits(cache_bytes=1))
    for number in range(3):
        assert await reader.values(config) == state
        state["one"].append(HumanMessage("and on", id=f"more{number}"))
        config = await reader.put(config, state)


async def test_a_message_that_was_changed_in_place_is_stored_as_it_is_now(saver: Verbs) -> None:
    state = messages(5)
    config = await saver.put(thread("t"), {"messages": state})
    state[2].content = "changed in place"
    state[3].additional_kwargs["added"] = [1, {"deep": True}]
    await saver.put(config, {"messages": state})
    assert (await saver.values(thread("t")))["messages"] == state
    first = (await saver.list(thread("t")))[-1]
    assert first.checkpoint["channel_values"]["messages"] == messages(5)


@pytest.mark.parametrize("place", [0, 3, 7])
async def test_a_message_that_was_changed_in_place_late_in_a_talk_is_stored_as_it_is_now(
    open_saver: Open, place: int
) -> None:
    """The list has been seen to be added to, again and again: that it was now cannot be taken for granted."""
    saver = await open_saver()
    state = messages(5)
    config = await saver.put(thread("t"), {"messages": state})
    for number in range(3):
        state = [*state, AIMessage("and more", id=f"more{number}")]
        config = await saver.put(config, {"messages": state})
    state[place].response_metadata["changed"] = "in place"
    state = [*state, AIMessage("and on", id="on")]
    await saver.put(config, {"messages": state})
    for reader in (saver, await open_saver()):
        assert (await reader.values(thread("t")))["messages"] == state
        assert (await reader.values(config))["messages"][place].response_metadata == {}


async def test_what_is_handed_out_shares_nothing_with_what_is_handed_out_next(saver: Verbs) -> None:
    call = {"name": "look", "args": {"deep": [1]}, "id": "c1", "type": "tool_call"}
    state = [
        AIMessage("", id="1", tool_calls=[call], response_metadata={"model": {"name": "m"}}),
        ToolMessage("found", id="2", tool_call_id="c1"),
    ]
    await saver.put(thread("t"), {"messages": state, "facts": {"list": [1]}})
    for _ in range(4):
        values = await saver.values(thread("t"))
        assert values["messages"] == state
        assert values["facts"] == {"list": [1]}
        first, second = values["messages"]
        first.tool_calls[0]["args"]["deep"].append(2)
        first.response_metadata["model"]["name"] = "other"
        second.additional_kwargs["x"] = 1
        second.content = "other"
        values["messages"].append("more")
        values["facts"]["list"].append(2)


async def test_a_large_value_that_comes_again_is_stored_once(saver: Verbs, url: str, user: str) -> None:
    document = {"text": said(random.Random(2), 5_000)}
    config = await saver.put(thread("t"), {"document": document, "n": 0})
    before = await stored_bytes(url, user)
    for number in range(10):
        config = await saver.put(config, {"document": {**document}, "n": number})
    assert await stored_bytes(url, user) - before < 6_000
    assert (await saver.values(thread("t")))["document"] == document


async def test_forks_of_a_thread_do_not_see_each_other(open_saver: Open) -> None:
    saver, other = await open_saver(), await open_saver()
    base = messages(3)
    root = await saver.put(thread("t"), {"messages": base})
    left, right = root, root
    for number in range(4):
        left = await saver.put(left, {"messages": [*base, *(f"left {n}" * 20 for n in range(number + 1))]})
        right = await other.put(right, {"messages": [*base, *(f"right {n}" * 20 for n in range(number + 1))]})
    for reader in (saver, other, await open_saver()):
        assert (await reader.values(left))["messages"] == [*base, *(f"left {n}" * 20 for n in range(4))]
        assert (await reader.values(right))["messages"] == [*base, *(f"right {n}" * 20 for n in range(4))]


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_prune_frees_what_stands_beside_what_is_still_used(
    open_saver: Open, url: str, user: str, kept: int
) -> None:
    """All three were put together, so they stand in one page."""
    saver = await open_saver()
    texts = [f"canary {number} " * 10 for number in range(3)]
    state = [HumanMessage(text, id=str(number)) for number, text in enumerate(texts)]
    config = await saver.put(thread("t"), {"messages": state})
    state = [state[kept]]
    config = await saver.put(config, {"messages": state})
    assert await stored_of(url, user, texts) == texts
    for _ in range(2):
        await saver.call("prune", ["t"])
        assert await stored_of(url, user, texts) == [texts[kept]]
        for reader in (saver, await open_saver()):
            assert (await reader.values(thread("t")))["messages"] == state
        state = [*state, AIMessage("and on", id="on")]
        config = await saver.put(config, {"messages": state})
        assert (await (await open_saver()).values(config))["messages"] == state


async def stored_of(url: str, user: str, texts: list[str]) -> list[str]:
    theirs = f"thread_key IN (SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}')"
    pages = [row[0] for row in await rows(url, f"SELECT data FROM tk_checkpoint_items WHERE {theirs}")]
    stored = [unsqueezed(page) for page in pages if isinstance(page, bytes) and page]
    return [text for text in texts if any(text.encode() in page for page in stored)]


async def test_copies_of_copies_hold_no_more_places(saver: Verbs, url: str, user: str) -> None:
    config = await saver.put(thread("c0"), {"messages": messages(3), "note": "x" * 300})
    await saver.put(config, {"messages": messages(5), "note": "y" * 300})
    counts = [await count(url, "tk_checkpoint_items", user)]
    for number in range(3):
        await saver.call("copy_thread", f"c{number}", f"c{number + 1}")
        counts.append(await count(url, "tk_checkpoint_items", user))
    first, *copied = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert len({*copied}) == 1
    assert first < copied[0] <= 2 * first


async def test_positions_of_a_pruned_fork_are_never_given_again(open_saver: Open) -> None:
    saver, other = await open_saver(), await open_saver()
    base = messages(3)
    root = await saver.put(thread("t"), {"messages": base}, id="1")
    abandoned = await saver.put(root, {"messages": [*base, "abandoned " * 30]}, id="2")
    assert (await other.values(abandoned))["messages"][-1] == "abandoned " * 30  # cached there
    await saver.put(root, {"messages": [*base]}, id="3")
    await saver.call("prune", ["t"])
    late = await other.put(thread("t", checkpoint_id="3"), {"messages": [*base, "instead " * 30]}, id="4")
    for reader in (saver, other, await open_saver()):
        assert (await reader.values(late))["messages"] == [*base, "instead " * 30]


@pytest.mark.parametrize("held", [True, False], ids=["held", "left open by an earlier version"])
async def test_places_between_what_is_still_used_are_never_given_again(
    open_saver: Open, url: str, user: str, held: bool
) -> None:
    """Of three pages the middle one is pruned; later the list ends before it, and another process goes on there."""
    saver, other = await open_saver(), await open_saver()
    old = [HumanMessage(f"old {number} " * 10, id=f"old {number}") for number in range(15)]
    config = thread("t")
    for stop in (5, 10, 15):
        config = await saver.put(config, {"messages": old[:stop]})
    without = await saver.put(config, {"messages": old[:5] + old[10:]})
    await saver.call("prune", ["t"])
    if not held:
        theirs = f"thread_key IN (SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}')"
        await rows(url, f"DELETE FROM tk_checkpoint_items WHERE length(data) = 0 AND {theirs}")
        await saver.call("prune", ["t"])  # which has no checkpoint to remove
    await saver.put(without, {"messages": old[:5]})
    assert len((await other.values(thread("t")))["messages"]) == 5
    latest = await other.get(thread("t"))
    assert latest is not None
    state = old[:5] + [HumanMessage(f"new {number} " * 10, id=f"new {number}") for number in range(7)]
    after = await other.put(latest.config, {"messages": state})
    for reader in (saver, other, await open_saver()):
        assert (await reader.values(after))["messages"] == state
        assert (await reader.values(without))["messages"] == old[:5] + old[10:]


async def test_pruning_frees_what_nobody_refers_to(saver: Verbs, url: str, user: str) -> None:
    config = thread("t")
    for number in range(10):
        config = await saver.put(config, {"messages": messages(number + 1), "document": f"{number}" * 5_000})
    before = await stored_bytes(url, user)
    await saver.call("prune", ["t"])
    assert await stored_bytes(url, user) < before / 2
    assert await saver.values(config) == {"messages": messages(10), "document": "9" * 5_000}


async def test_removing_messages_in_a_graph_comes_back_exactly(saver: Verbs) -> None:
    answers = iter(
        [
            {"messages": [AIMessage("one", id="a1")]},
            {"messages": [RemoveMessage(id="u1"), AIMessage("two", id="a2")]},
            {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("three", id="a3")]},
            {"messages": [AIMessage("changed", id="a3")]},
        ]
    )
    graph = chat_graph(saver.saver, lambda state: next(answers))
    for turn in range(1, 5):
        config = thread("t")
        live = await graph.ainvoke({"messages": [HumanMessage(f"said {turn} " * 20, id=f"u{turn}")]}, config)
        assert (await saver.values(config))["messages"] == live["messages"]
    contents = [
        [message.id for message in state.values.get("messages", [])] async for state in graph.aget_state_history(config)
    ]
    assert contents[0] == ["a3", "u4"]
    assert len(contents) == 12


class Vault(EncryptedSerializer):
    """An application's own, with nothing changed."""


class Sealing:
    """Encrypts in a way that nobody here knows: equal values never have equal bytes."""

    def __init__(self) -> None:
        self._inner = EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 32)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "sealed", packed([*self._inner.dumps_typed(obj)])

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, sealed = unpacked(data[1])
        return self._inner.loads_typed((kind, sealed))


@pytest.mark.parametrize("kind", [EncryptedSerializer, Vault, Sealing])
async def test_the_bytes_of_an_encrypted_turn_do_not_grow_when_another_process_goes_on(
    open_saver: Open, url: str, user: str, kind: Any
) -> None:
    known = EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 32)
    state, config, sizes = list[BaseMessage](), thread("t"), [0]
    for number in range(12):
        saver = await open_saver(serde=Sealing() if kind is Sealing else kind(known.cipher, known.serde))
        state = [*state, HumanMessage(said(random.Random(number), 60), id=str(number))]
        config = await saver.put(config, {"messages": state})
        sizes.append(await stored_bytes(url, user))
        assert (await saver.values(thread("t")))["messages"] == state
    assert sizes[-1] - sizes[-4] < 1.3 * (sizes[4] - sizes[1])


def test_the_default_serializer_is_strict_and_never_pickles() -> None:
    with ThreadkeepSaver.from_url_sync("sqlite://", user="u") as saver:
        assert saver.serde._allowed_msgpack_modules is None  # type: ignore[attr-defined]
        assert saver.serde.pickle_fallback is False  # type: ignore[attr-defined]


async def test_a_list_that_was_pushed_out_of_the_cache_grows_where_it_ends(
    open_saver: Open, url: str, user: str
) -> None:
    """A model takes its time, and others fill the cache meanwhile: no stretch of its own begins with every answer."""
    writer = await open_saver(limits=Limits(cache_bytes=1))
    state = messages(4)
    config = await writer.put(thread("t"), {"messages": state})
    for number in range(3):
        await writer.put(thread(f"another{number}"), {"messages": messages(2)})
        state = [*state, HumanMessage("and on", id=f"more{number}")]
        config = await writer.put(config, {"messages": state})
    theirs = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}' AND thread_id = 't'"
    stretches = f"SELECT count(DISTINCT strand) FROM tk_checkpoint_items WHERE thread_key IN ({theirs})"
    assert await rows(url, stretches) == [(1,)]
    assert (await (await open_saver()).values(config))["messages"] == state
