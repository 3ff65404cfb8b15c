"""Puts and reads that others overtake: a node in another thread, another run, a deletion."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base.id import uuid6

from tests.adapters.test_langgraph_storage import messages
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.session import Limits
from threadkeep.errors import ScopeErased
from threadkeep.ports.checkpoints import PositionTaken


async def test_a_message_that_is_changed_while_it_is_put_is_stored_by_the_next_put(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread changes it just after it was encoded: what is stored is the old one, and must be known as that."""
    saver = await open_saver()
    state = messages(3)
    config = await saver.put(thread("t"), {"messages": state})
    late = AIMessage("as it was", id="late")
    encode = Codec.encode

    def overtaken(codec: Codec, value: Any, where: str) -> Any:
        encoded = encode(codec, value, where)
        if value is late:
            late.content = "as it is now"
        return encoded

    with monkeypatch.context() as patched:
        patched.setattr(Codec, "encode", overtaken)
        state = [*state, late]
        config = await saver.put(config, {"messages": state})
    fresh = await open_saver()
    assert (await saver.values(config))["messages"] == (await fresh.values(config))["messages"]
    for number in range(2):
        state = [*state, AIMessage("and on", id=f"on{number}")]
        config = await saver.put(config, {"messages": state})
        for reader in (saver, await open_saver()):
            assert (await reader.values(config))["messages"] == state


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
    use, tries = saver.saver._session.door.use, []

    async def changing(work: Any) -> Any:
        try:
            return await use(work)
        except PositionTaken:
            tries.append("taken")
            state[0].content = state[-1].content = "changed"
            raise

    monkeypatch.setattr(saver.saver._session.door, "use", changing)
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
    reading = reader.saver._session.reading
    fetch = reading.fetch

    async def late(*args: Any) -> Any:
        monkeypatch.setattr(reading, "fetch", fetch)
        await (other.saver.aprune(["t"]) if how == "prune" else other.saver.adelete_thread("t"))
        return await fetch(*args)

    monkeypatch.setattr(reading, "wanting", lambda thread: None)
    monkeypatch.setattr(reading, "fetch", late)
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
