"""What others do to a thread while a turn of it begins, is in flight or has ended: nothing is wedged or damaged."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from langgraph.types import Command

from tests.adapters.agent import agent
from tests.adapters.test_langgraph_turns import only_async, said
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.checkpoints.store import DatabaseCheckpoints
from threadkeep.errors import CheckpointCorrupt, Conflict, ScopeErased
from threadkeep.settings import Settings

pytestmark = only_async
WAITING = said("use 1 confirm: it")
KEY, OTHER_KEY = (
    Settings(THREADKEEP_SLOT_KEY=base64.b64encode(letter * 32).decode())  # type: ignore[call-arg]
    for letter in (b"k", b"o")
)


async def ask(saver: Verbs, given: Any, run: str | None = None) -> Any:
    config = thread("t") if run is None else {**thread("t"), "metadata": {"run_id": run}}
    return await saver.saver.attached(agent(saver.saver)).ainvoke(given, config)


async def test_the_writes_of_a_new_run_wait_for_its_first_put_in_a_thread_that_was_deleted_once(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The put has still to ask for the turn's key when the writes are tried."""
    saver = await open_saver(tool_traffic="turn")
    await saver.put(thread("t"), {"n": 0})
    await saver.call("delete_thread", "t")
    saver.saver._turns.forget(saver.saver._thread("t"))
    loop, tried, refused = asyncio.get_running_loop(), asyncio.Event(), []
    put_writes, begin = DatabaseCheckpoints.put_writes, saver.saver._turns.writing

    async def storing(*args: Any, **kwargs: Any) -> None:
        try:
            await put_writes(*args, **kwargs)
        except ScopeErased:
            refused.append(True)
            raise
        finally:
            loop.call_soon_threadsafe(tried.set)

    async def beginning(*args: Any) -> Any:
        monkeypatch.setattr(saver.saver._turns, "writing", begin)
        await tried.wait()
        return await begin(*args)

    monkeypatch.setattr(DatabaseCheckpoints, "put_writes", storing)
    monkeypatch.setattr(saver.saver._turns, "writing", beginning)
    first = "1f000000-0000-6000-8000-000000000000"
    put = asyncio.create_task(saver.put(thread("t"), {"n": 1}, id=first))
    await asyncio.sleep(0)
    await saver.call("put_writes", thread("t", checkpoint_id=first), [("n", 2)], "task")
    await put
    found = await saver.get(thread("t"))
    assert found is not None
    assert found.pending_writes == [("task", "n", 2)]
    assert refused == [True]


@pytest.mark.parametrize("traffic", ["turn", "keep"])
async def test_a_thread_whose_turn_is_in_flight_is_not_copied(open_saver: Open, traffic: str) -> None:
    """Nobody could read the copy: the key is the thread's own."""
    saver, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic=traffic)
    await ask(saver, said("hello"))
    await ask(saver, WAITING)
    with pytest.raises(Conflict, match="in flight"):
        await other.call("copy_thread", "t", "copy")
    assert await other.get(thread("copy")) is None
    await ask(saver, Command(resume="fine"))
    await other.call("copy_thread", "t", "copy")
    assert await other.values(thread("copy")) == await other.values(thread("t"))


@pytest.mark.parametrize("verb", ["prune", "delete_for_runs"])
async def test_one_who_knows_no_keys_may_thin_out_a_thread_whose_turn_waits(open_saver: Open, verb: str) -> None:
    saver, keeping = await open_saver(tool_traffic="turn"), await open_saver()
    await ask(saver, said("hello"), run="first")
    await ask(saver, WAITING, run="second")
    await keeping.call(verb, ["t"] if verb == "prune" else ["first", "second"])
    done = await ask(saver, Command(resume="fine"))
    assert [one.content for one in done["messages"] if one.type == "human"] == ["hello", "use 1 confirm: it"]
    assert done["messages"][-2].content.endswith(" was fine")


@pytest.mark.parametrize("verb", ["prune", "delete_for_runs"])
async def test_a_turn_that_begins_while_its_thread_is_thinned_out_stays(
    open_saver: Open, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    saver, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    await ask(saver, said("hello"), run="first")
    key = saver.saver._turns.key

    async def overtaken(at: Any) -> Any:
        monkeypatch.setattr(saver.saver._turns, "key", key)
        found = await key(at)
        await ask(other, WAITING, run="second")
        return found

    monkeypatch.setattr(saver.saver._turns, "key", overtaken)
    await saver.call(verb, ["t"] if verb == "prune" else ["first"])
    done = await ask(other, Command(resume="fine"))
    assert done["messages"][-2].content.endswith(" was fine")


async def test_a_put_under_the_key_of_a_turn_that_others_have_ended_goes_on_with_theirs(open_saver: Open) -> None:
    """Its parent is of the turn that has begun since, which the old key does not open."""
    saver, other = await open_saver(tool_traffic="turn"), await open_saver(tool_traffic="turn")
    await ask(saver, WAITING)
    await ask(other, Command(resume="fine"))
    await ask(other, WAITING)
    waiting = await other.get(thread("t"))
    assert waiting is not None
    after = await saver.put(waiting.config, waiting.checkpoint["channel_values"])
    assert await other.values(after) == waiting.checkpoint["channel_values"]


async def test_what_was_before_a_turn_outlives_its_key_also_where_the_thread_was_pruned(
    open_saver: Open,
) -> None:
    saver, keeping = await open_saver(tool_traffic="turn", settings=KEY), await open_saver()
    await ask(saver, said("hello"))
    await ask(saver, WAITING)
    await keeping.call("prune", ["t"])
    other = await open_saver(tool_traffic="turn", settings=OTHER_KEY)
    assert await other.call("end_turn", thread("t"), abandon=True) is True
    messages = (await keeping.values(thread("t")))["messages"]
    assert [one.content for one in messages] == ["hello", "Done after 0 result(s)."]


async def test_channels_that_stay_outlive_a_turn_that_is_pruned_and_abandoned_by_one_who_knows_less(
    open_saver: Open,
) -> None:
    saver = await open_saver(tool_traffic="turn", turn_keeps=["notes"])
    await saver.put(thread("t"), {"messages": [], "notes": "kept"})
    await saver.call("end_turn", thread("t"), abandon=True)
    config = (await saver.get(thread("t"))).config  # type: ignore[union-attr]
    for number in range(2):
        config = await saver.put(config, {"messages": [], "notes": "kept", "n": number})
    await (await open_saver()).call("prune", ["t"])
    await (await open_saver(tool_traffic="turn")).call("end_turn", thread("t"), abandon=True)
    assert (await saver.values(thread("t")))["notes"] == "kept"


async def test_the_key_of_a_turn_that_cannot_be_opened_here_is_not_remembered(open_saver: Open) -> None:
    saver = await open_saver(tool_traffic="turn", settings=KEY)
    other = await open_saver(tool_traffic="turn", settings=OTHER_KEY)
    await ask(saver, WAITING)
    with pytest.raises(CheckpointCorrupt, match="another THREADKEEP_SLOT_KEY"):
        await other.put(thread("t"), {"n": 1})
    await saver.call("end_turn", thread("t"), abandon=True)
    after = await other.put(thread("t"), {"n": 1})
    assert await other.values(after) == {"n": 1}
