"""Puts and reads that others overtake: a node in another thread, another run, a deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from tests.adapters.test_langgraph_storage import messages
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.adapters.langgraph import drafting as writing
from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.session import Limits
from threadkeep.errors import Conflict, ScopeErased, TooLarge
from threadkeep.ports.checkpoints import PositionTaken
from threadkeep.settings import Settings


def overtaken(monkeypatch: pytest.MonkeyPatch, reader: Verbs, by: Callable[[], Awaitable[object]]) -> None:
    """What is done between a checkpoint's row and its items, once."""
    reading = reader.saver._session.reading
    monkeypatch.setattr(reading, "wanting", lambda thread: None)  # as if they were evicted in that moment
    fetch = reading.fetch

    async def late(*args: Any) -> Any:
        monkeypatch.setattr(reading, "fetch", fetch)
        await by()
        return await fetch(*args)

    monkeypatch.setattr(reading, "fetch", late)


async def test_a_message_that_is_changed_while_it_is_put_is_stored_by_the_next_put(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread changes it just after it was encoded: what is stored is the old one, and must be known as that."""
    saver = await open_saver()
    state = messages(3)
    config = await saver.put(thread("t"), {"messages": state})
    late = AIMessage("as it was", id="late")
    encode = Codec.encode

    def changing(codec: Codec, value: Any, where: str) -> Any:
        encoded = encode(codec, value, where)
        if value is late:
            late.content = "as it is now"
        return encoded

    with monkeypatch.context() as patched:
        patched.setattr(Codec, "encode", changing)
        state = [*state, late]
        config = await saver.put(config, {"messages": state})
    fresh = await open_saver()
    assert (await saver.values(config))["messages"] == (await fresh.values(config))["messages"]
    for number in range(2):
        state = [*state, AIMessage("and on", id=f"on{number}")]
        config = await saver.put(config, {"messages": state})
        for reader in (saver, await open_saver()):
            assert (await reader.values(config))["messages"] == state


async def test_the_first_put_of_a_thread_loses_nothing_to_a_prune_beside_it(open_saver: Open) -> None:
    """There is nothing yet that whoever prunes could hold while they look."""
    pruner, writer = await open_saver(), await open_saver()
    await asyncio.gather(pruner.get(thread("t")), writer.get(thread("t")))
    names = [f"t{number}" for number in range(100)]
    for number, name in enumerate(names):
        first = writer.put(thread(name), {"messages": messages(1)})
        await asyncio.gather(_after(number % 5, pruner.call("prune", [name])), _after(number // 5 % 5, first))
    reader = await open_saver()
    for name in names:
        assert (await reader.values(thread(name)))["messages"] == messages(1)


async def _after(moments: int, work: Awaitable[object]) -> None:
    await asyncio.sleep(moments * 0.0005)
    await work


async def test_of_two_copies_into_one_new_thread_one_is_whole_and_the_other_refused(open_saver: Open) -> None:
    one, other, reader = await open_saver(), await open_saver(), await open_saver()
    for number in range(20):
        sources, target = (f"one{number}", f"other{number}"), f"target{number}"
        start = await one.put(thread(sources[0]), {"messages": messages(4)})
        await one.call("copy_thread", *sources)
        for length in (5, 6):
            start = await one.put(start, {"messages": messages(length)})
        copies = [
            _after(number % 2, saver.call("copy_thread", source, target))
            for saver, source in zip((one, other), sources, strict=True)
        ]
        outcomes = await asyncio.gather(*copies, return_exceptions=True)
        assert sorted(map(type, outcomes), key=str) == [type(None), Conflict]
        copied = sources[outcomes.index(None)]
        assert await _told(reader, target) == await _told(reader, copied)


async def _told(reader: Verbs, name: str) -> list[tuple[str, Any]]:
    return [(one.checkpoint["id"], one.checkpoint["channel_values"]) for one in await reader.list(thread(name))]


async def test_what_changes_while_a_put_finds_its_place_taken_is_stored_whole(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a list may be as it was before a wait, and the rest as it was after."""
    saver = await open_saver()
    state = messages(2)
    config = await saver.put(thread("t"), {"messages": state})
    state = [*state, AIMessage("more", id="more")]
    config = await saver.put(config, {"messages": state})
    await (await open_saver()).put(config, {"messages": [*state, AIMessage("another run's", id="other")]})
    state = [*state, AIMessage("ours", id="ours")]
    use, tries = saver.saver._session.router.use, []

    async def changing(work: Any) -> Any:
        try:
            return await use(work)
        except PositionTaken:
            tries.append("taken")
            state[0].content = state[-1].content = "changed"
            raise

    monkeypatch.setattr(saver.saver._session.router, "use", changing)
    config = await saver.put(config, {"messages": state})
    assert tries == ["taken"]
    assert (await (await open_saver()).values(config))["messages"] == state


async def test_a_list_with_one_message_replaced_is_drafted_again_and_nothing_else_encoded_twice(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = await open_saver()
    state = messages(3)
    config = await saver.put(thread("t"), {"messages": state, "notes": {}})
    state = [*state, AIMessage("more", id="more")]
    config = await saver.put(config, {"messages": state, "notes": {}})
    encode, encoded = Codec.encode, list[str]()

    def noted(codec: Codec, value: Any, where: str) -> Any:
        encoded.append(where)
        return encode(codec, value, where)

    monkeypatch.setattr(Codec, "encode", noted)
    state = [HumanMessage("another", id="0"), *state[1:]]
    notes = {"long": "text " * 200}
    config = await saver.put(config, {"messages": state, "notes": notes})
    assert encoded.count("channel 'notes'") == 1
    assert await saver.values(config) == {"messages": state, "notes": notes}


async def test_versions_that_are_changed_in_what_was_handed_out_change_nothing_here(saver: Verbs) -> None:
    config = await saver.put(thread("t"), {"x": 1})
    found = await saver.get(config)
    assert found is not None
    changed = found.checkpoint
    changed["channel_values"]["x"] = 2
    changed["channel_versions"]["x"] = "2"
    changed["id"] = str(uuid6(clock_seq=1))
    assert (await saver.values(await saver.call("put", config, changed, {}, {})))["x"] == 2


async def test_what_was_deleted_is_not_read_again_in_a_thread_that_was_restored_from_a_copy(open_saver: Open) -> None:
    """A process that has read the first thread knows items of it behind the end of the copy."""
    writer, other = await open_saver(), await open_saver()
    state = messages(3)
    begun = await writer.put(thread("t"), {"messages": state})
    await writer.call("copy_thread", "t", "backup")
    deleted = [*state, AIMessage("deleted", id="deleted")]
    await writer.put(begun, {"messages": deleted})
    assert (await other.values(thread("t")))["messages"] == deleted
    await writer.call("delete_thread", "t")
    await writer.call("copy_thread", "backup", "t")
    config = begun
    for number in range(3):
        state = [*state, AIMessage("new", id=f"new{number}")]
        config = await writer.put(config, {"messages": state})
        for reader in (writer, other, await open_saver()):
            assert (await reader.values(thread("t")))["messages"] == state
    await writer.call("prune", ["t"])
    assert (await other.values(thread("t")))["messages"] == state
    await writer.call("copy_thread", "t", "again")
    assert (await other.values(thread("again")))["messages"] == state


@pytest.mark.parametrize("how", ["prune", "delete"])
async def test_a_checkpoint_that_goes_while_it_is_read_is_not_called_damaged(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Between its row and its items."""
    writer = await open_saver()
    old = await writer.put(thread("t"), {"messages": messages(3)})
    await writer.put(old, {"messages": [HumanMessage("all anew " * 20, id="new")]})
    reader, other = await open_saver(), await open_saver()
    await reader.get(thread("nobody"))
    going = (lambda: other.saver.aprune(["t"])) if how == "prune" else (lambda: other.saver.adelete_thread("t"))
    overtaken(monkeypatch, reader, going)
    assert await reader.get(old) is None
    assert [*await reader.list(thread("t", checkpoint_id=old["configurable"]["checkpoint_id"]))] == []


@pytest.mark.parametrize("how", ["prune", "delete"])
async def test_a_parent_that_goes_while_a_put_asks_for_it_is_not_called_damaged(open_saver: Open, how: str) -> None:
    small, other = await open_saver(limits=Limits(cache_bytes=1)), await open_saver()
    state = messages(3)
    config = await small.put(thread("t"), {"messages": state})
    await other.put(config, {"messages": [HumanMessage("all anew " * 20, id="new")]})
    await small.put(thread("u"), {"messages": messages(3)})  # which pushes the first thread's items out
    await (other.call("prune", ["t"]) if how == "prune" else other.call("delete_thread", "t"))
    state = [*state, AIMessage("and on", id="on")]
    if how == "delete":
        with pytest.raises(ScopeErased):
            await small.put(config, {"messages": state})
    else:
        config = await small.put(config, {"messages": state})
        assert (await other.values(config))["messages"] == state


@pytest.mark.parametrize("how", ["prune", "turn"])
@pytest.mark.parametrize("verb", ["get", "list"])
async def test_the_latest_that_goes_while_it_is_read_is_another_by_then(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch, how: str, verb: str
) -> None:
    """A thread that has a checkpoint at any time is never found without one: a graph would begin anew."""
    traffic = {"tool_traffic": "turn"} if how == "turn" else {}
    writer, reader = await open_saver(**traffic), await open_saver(**traffic)
    config = await writer.put(thread("t"), {"messages": messages(3)})
    await reader.get(thread("t"))  # so that it asks only for what it does not know
    state = [*messages(3), HumanMessage("second " * 20, id="second")]
    config = await writer.put(config, {"messages": state})

    async def go_on() -> None:
        if how == "turn":
            assert await writer.saver.aend_turn(thread("t"))
        else:
            state[:] = [HumanMessage("all anew " * 20, id="new")]
            newest = empty_checkpoint() | {"channel_values": {"messages": state}, "channel_versions": {"messages": "9"}}
            await writer.saver.aput(config, newest, {}, {"messages": "9"})
            await writer.saver.aprune(["t"])

    overtaken(monkeypatch, reader, go_on)
    found = await reader.get(thread("t")) if verb == "get" else (await reader.list(thread("t"), limit=1))[0]
    assert found is not None
    assert [message.id for message in found.checkpoint["channel_values"]["messages"]] == [one.id for one in state]


async def test_the_history_of_a_delta_channel_that_is_pruned_while_it_is_read_is_read_again(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = await open_saver(), await open_saver()
    config = await writer.put(thread("t"), {"d": _DeltaSnapshot([HumanMessage("hello " * 30, id="h")])})
    config = await writer.put(config, {"d": _DeltaSnapshot([AIMessage("z" * 200, id="z")])})
    await reader.get(config)
    overtaken(monkeypatch, reader, lambda: writer.saver.aprune(["t"]))
    assert await reader.call("get_delta_channel_history", config=config, channels=["d"]) == {"d": {"writes": []}}


@pytest.mark.parametrize("how", ["append", "pop"])
async def test_a_list_that_another_thread_changes_while_it_is_put_is_stored_as_it_was_at_the_beginning(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Neither twice nor not at all, now or in a later put."""
    saver = await open_saver()
    state = messages(3)
    config = await saver.put(thread("t"), {"messages": state})
    config = await saver.put(config, {"messages": state})
    looked = writing.fingerprint
    more = AIMessage("more", id="more")

    def changing(value: Any) -> Any:
        try:
            return looked(value)
        finally:
            monkeypatch.setattr(writing, "fingerprint", looked)
            state.append(AIMessage("late", id="late")) if how == "append" else state.pop()

    state.append(more)
    put = [*state]
    monkeypatch.setattr(writing, "fingerprint", changing)
    config = await saver.put(config, {"messages": state})
    assert (await (await open_saver()).values(config))["messages"] == put
    for number in range(2):
        state.append(AIMessage("on", id=f"on{number}"))
        config = await saver.put(config, {"messages": state})
        for reader in (saver, await open_saver()):
            assert (await reader.values(config))["messages"] == state


async def test_a_list_with_more_in_front_is_not_too_large_where_its_parts_are_not(open_saver: Open) -> None:
    """As if it were only added to, all of its second half would have to be stored again."""
    saver = await open_saver(limits=Limits(max_value_bytes=3_000))
    state: list[Any] = [AIMessage("ok"), HumanMessage("?")]
    config = await saver.put(thread("t"), {"messages": state})
    for more in ([HumanMessage("b" * 1_800)], [HumanMessage("c" * 1_800), AIMessage("ok")]):
        state = [*state, *more]
        config = await saver.put(config, {"messages": state})
    state = [*(HumanMessage(f"{number}") for number in range(4)), *state]  # the fifth is as it was
    config = await saver.put(config, {"messages": state})
    assert (await (await open_saver()).values(config))["messages"] == state
    with pytest.raises(TooLarge):
        await saver.put(config, {"messages": [*state, HumanMessage("d" * 3_000)]})


@pytest.mark.parametrize("how", ["named", "latest", "listed", "history"])
async def test_what_is_freed_beside_what_is_used_while_it_is_read_is_gone_and_not_damaged(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """All ten stand in one page, of which the second half is still used."""
    writer, reader = await open_saver(), await open_saver()
    state = messages(10)
    config = await writer.put(thread("t"), {"messages": state, "d": _DeltaSnapshot(state)})
    half = {"messages": state[5:], "d": _DeltaSnapshot(state[5:])}
    going_on = await writer.put(config, half) if how != "latest" else config
    await reader.get(await writer.put(thread("t", "sub"), {"x": "y" * 300}))  # so that items come after the row

    async def go_on() -> None:
        if how == "latest":
            newest = empty_checkpoint() | {"channel_values": half, "channel_versions": dict.fromkeys(half, "9")}
            await writer.saver.aput(config, newest, {}, dict.fromkeys(half, "9"))
        await writer.saver.aprune(["t"])

    overtaken(monkeypatch, reader, go_on)
    if how == "named":
        assert await reader.get(config) is None
    elif how == "latest":
        assert (await reader.values(thread("t")))["messages"] == state[5:]
    elif how == "listed":
        only = thread("t", checkpoint_id=config["configurable"]["checkpoint_id"])
        assert [*await reader.list(only)] == []
    else:
        found = await reader.call("get_delta_channel_history", config=going_on, channels=["d"])
        assert found == {"d": {"writes": []}}


async def test_what_was_freed_is_read_again_in_a_thread_that_was_restored_from_a_copy(open_saver: Open) -> None:
    writer, other = await open_saver(), await open_saver()
    state = messages(10)
    begun = await writer.put(thread("t"), {"messages": state})
    config = await writer.put(begun, {"messages": state[5:]})
    await writer.call("copy_thread", "t", "backup")
    await writer.call("prune", ["t"])
    assert (await other.values(config))["messages"] == state[5:]
    await writer.call("delete_thread", "t")
    await writer.call("copy_thread", "backup", "t")
    for reader in (other, writer, await open_saver()):
        assert (await reader.values(begun))["messages"] == state


@pytest.mark.parametrize("traffic", ["keep", "turn"])
async def test_what_is_appended_after_a_put_was_begun_is_not_in_it(url: str, user: str, traffic: Any) -> None:
    state = messages(3)
    async with ThreadkeepSaver.from_url(url, user=user, tool_traffic=traffic, settings=Settings()) as saver:
        checkpoint = empty_checkpoint() | {"channel_values": {"messages": state}, "channel_versions": {"messages": "1"}}
        putting = asyncio.create_task(saver.aput(thread("t"), checkpoint, {}, {"messages": "1"}))
        await asyncio.sleep(0)
        state.append(HumanMessage("later"))
        found = await saver.aget_tuple(await putting)
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == state[:3]
