"""Whose thread it is: two users, two threads; erasing a user finds every one."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.database import count, every_value, rows
from tests.adapters.verbs import Open, Verbs, thread, verbs_of
from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.errors import Conflict, InvalidScope, ScopeErased


async def test_the_same_thread_id_under_two_users_is_two_threads(open_saver: Open) -> None:
    ann, bob = await open_saver(user=f"ann-{uuid4()}"), await open_saver(user=f"bob-{uuid4()}")
    for saver, value in ((ann, "ann's"), (bob, "bob's")):
        await saver.put(thread("t"), {"x": value})
    assert await ann.values(thread("t")) == {"x": "ann's"}
    await ann.call("delete_thread", "t")
    assert await bob.values(thread("t")) == {"x": "bob's"}
    assert len(await bob.list(None)) == 1
    tenant = await open_saver(tenant=f"other-{uuid4()}")
    assert await tenant.get(thread("t")) is None


async def test_the_user_may_come_with_the_config_and_leads_back(open_saver: Open) -> None:
    saver = await open_saver(user=None)
    ann, bob = f"ann-{uuid4()}", f"bob-{uuid4()}"
    first = await saver.put(thread("t", user_id=ann), {"x": "ann's"})
    await saver.put(thread("t", user_id=bob, tenant_id="other"), {"x": "bob's"})
    second = await saver.put(first, {"x": "ann's second"})
    assert await saver.values(second) == {"x": "ann's second"}
    found = await saver.get(thread("t", user_id=ann))
    assert found is not None
    assert found.parent_config == first
    assert await saver.values(found.parent_config) == {"x": "ann's"}
    assert await saver.get(thread("t", user_id=bob)) is None
    assert len(await saver.list(thread("t", user_id=ann))) == 2


async def test_without_a_user_the_error_says_how_to_name_one(open_saver: Open) -> None:
    saver = await open_saver(user=None)
    with pytest.raises(InvalidScope, match="user_id"):
        await saver.get(thread("t"))
    with pytest.raises(InvalidScope, match="for_user"):
        await saver.call("delete_thread", "t")


async def test_for_user_is_the_same_saver_for_one_user(open_saver: Open, mode: str, user: str) -> None:
    saver = await open_saver(user=None)
    await saver.put(thread("t", user_id=user), {"x": 1})
    own = verbs_of(saver.saver.for_user(user), mode)
    assert await own.values(thread("t")) == {"x": 1}
    await own.call("delete_thread", "t")
    assert await saver.get(thread("t", user_id=user)) is None


async def filled(saver: Verbs, name: str, canary: str) -> dict[str, Any]:
    stored = await saver.put(thread(name), {"messages": [canary * 50], "large": canary * 500, "x": canary})
    await saver.call("put_writes", stored, [("x", canary)], "task")
    return stored


async def test_erasing_a_user_reaches_every_thread_and_stops_runs_in_flight(
    open_saver: Open, url: str, user: str
) -> None:
    saver = await open_saver()
    canary = f"canary-{uuid4()}"
    stored = [await filled(saver, name, canary) for name in ("t1", "t2", "x" * 1_000)]
    kept = await open_saver(user=f"{user}-other")
    await kept.put(thread("t1"), {"x": "kept"})
    async with open_memory(url, settings=Settings()) as memory:
        await memory.append(Scope("default", user, "t1"), [UserMessage("hello")])
        proof = await memory.erase(Scope("default", user))
    assert proof.stores["checkpoints"].removed == 3
    assert proof.complete
    assert not [value for value in await every_value(url) if canary.encode() in value]
    with pytest.raises(ScopeErased):
        await saver.put(stored[0], {"messages": [canary * 50]})
    with pytest.raises(ScopeErased):
        await saver.call("put_writes", stored[1], [("x", canary)], "late")
    assert await count(url, "tk_checkpoint_items", user) == 0
    assert await kept.values(thread("t1")) == {"x": "kept"}
    assert await saver.get(thread("t1")) is None
    again = await saver.put(thread("t1"), {"x": "a new beginning"})
    await saver.call("put_writes", again, [("x", 1)], "task")
    assert await saver.values(await saver.put(again, {"x": "goes on"})) == {"x": "goes on"}


async def test_erasing_a_conversation_erases_the_thread_of_its_name(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver()
    for name in ("t1", "t2"):
        await filled(saver, name, "canary")
    async with open_memory(url, settings=Settings()) as memory:
        proof = await memory.erase(Scope("default", user, "t1"))
    assert proof.stores["checkpoints"].removed == 1
    assert await saver.get(thread("t1")) is None
    assert (await saver.values(thread("t2")))["x"] == "canary"


async def test_a_run_cannot_write_to_a_thread_that_was_deleted_under_it(open_saver: Open, url: str, user: str) -> None:
    saver, other = await open_saver(), await open_saver()
    stored = await saver.put(thread("t"), {"x": 1})
    await other.call("delete_thread", "t")
    with pytest.raises(ScopeErased):
        await saver.put(stored, {"x": 2})
    with pytest.raises(ScopeErased):
        await saver.call("put_writes", stored, [("x", 2)], "task")
    assert await count(url, "conversation_checkpoints", user) == 0
    await saver.put(thread("t"), {"x": "new"})
    with pytest.raises(ScopeErased):  # the old run, beside the new one
        await other.put(stored, {"x": 3})
    assert await saver.values(thread("t")) == {"x": "new"}


async def test_a_first_run_cannot_write_to_a_thread_that_was_deleted_under_it(
    open_saver: Open, mode: str, url: str, user: str
) -> None:
    saver = await open_saver()
    begun = verbs_of(await saver.call("beginning", "t"), mode)
    await saver.call("delete_thread", "t")
    with pytest.raises(ScopeErased):
        await begun.put(thread("t"), {"x": 1})
    assert await count(url, "conversation_checkpoints", user) == 0
    again = verbs_of(await saver.call("beginning", "t"), mode)
    stored = await again.put(thread("t"), {"x": "new"})
    await again.call("put_writes", stored, [("x", 1)], "task")
    assert await saver.values(thread("t")) == {"x": "new"}


async def test_a_run_may_write_to_other_threads_whatever_became_of_them_before(
    open_saver: Open, mode: str, user: str
) -> None:
    saver = await open_saver()
    for own in (saver, verbs_of(saver.saver.for_user(f"{user}-other"), mode)):
        await own.put(thread("once deleted"), {"x": 1})
        await own.call("delete_thread", "once deleted")
    begun = await saver.call("beginning", "t")
    for own in (verbs_of(begun, mode), verbs_of(begun.for_user(f"{user}-other"), mode)):
        await own.put(thread("once deleted"), {"x": "new"})
    both = verbs_of(await verbs_of(begun, mode).call("beginning", "once deleted"), mode)
    for name in ("t", "once deleted"):
        await both.put(thread(name), {"x": "newer"})
        await saver.call("delete_thread", name)
        with pytest.raises(ScopeErased):
            await both.put(thread(name), {"x": "late"})


async def test_a_copy_is_whole_and_on_its_own(saver: Verbs) -> None:
    first = await filled(saver, "source", "said")
    second = await saver.put(first, {"messages": ["said" * 50, "more" * 50], "large": "said" * 500, "x": "later"})
    await saver.call("copy_thread", "source", "target")
    await saver.put(second, {"x": "only in the source"})
    await saver.call("delete_thread", "source")
    copied = await saver.list(thread("target"))
    assert [one.checkpoint["channel_values"]["x"] for one in copied] == ["later", "said"]
    assert copied[1].pending_writes == [("task", "x", "said")]
    later = await saver.put(copied[0].config, {"messages": ["said" * 50, "more" * 50, "target's" * 50]})
    assert len((await saver.values(later))["messages"]) == 3


async def test_a_copy_has_what_was_counted(saver: Verbs) -> None:
    contexts = [{"documentId": name, "queryIndex": 0} for name in ("one", "two")]
    await saver.put(thread("t"), {"queries": [{"query": "q"}], "retrievedContexts": contexts, "cached": True})
    await saver.call("copy_thread", "t", "copy")
    told, copied = [await saver.call("get_conversation_stats", name) for name in ("t", "copy")]
    assert (copied.query_count, copied.unique_documents, copied.cache_hit_rate) == (1, 2, 1.0)
    assert copied.avg_contexts_per_query == told.avg_contexts_per_query


async def test_a_copy_over_a_thread_that_is_there_is_refused(saver: Verbs) -> None:
    for name in ("source", "target"):
        await filled(saver, name, name)
    with pytest.raises(Conflict, match="target"):
        await saver.call("copy_thread", "source", "target")
    assert (await saver.values(thread("target")))["x"] == "target"


async def test_the_threads_row_says_whose_it_is_and_when(saver: Verbs, url: str, user: str) -> None:
    await saver.put(thread("t"), {"x": 1})
    columns = "thread_id, user_id, tenant, query_count, context_count, access_level, expired_at"
    found = await rows(url, f"SELECT {columns} FROM conversation_metadata WHERE user_id = '{user}'")
    told = [value.decode() if isinstance(value, bytes) else value for value in found[0]]
    assert told == ["t", user, "default", 0, 0, "public", None]
    times = await rows(url, f"SELECT started_at, last_activity_at FROM conversation_metadata WHERE user_id = '{user}'")
    assert times[0][0] == times[0][1]


async def test_a_saver_works_from_several_loops_and_threads_at_once(url: str, user: str) -> None:
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as saver:

        async def in_a_loop(name: str) -> None:
            verbs = verbs_of(saver, "async")
            for number in range(5):
                await verbs.put(thread(name), {"x": number})

        def with_a_loop_of_its_own(name: str) -> None:
            asyncio.run(in_a_loop(name))

        def without_a_loop(name: str) -> None:
            for number in range(5):
                asyncio.run(verbs_of(saver, "sync").put(thread(name), {"x": number}))

        await asyncio.gather(
            in_a_loop("a"), asyncio.to_thread(with_a_loop_of_its_own, "b"), asyncio.to_thread(without_a_loop, "c")
        )
        for name in "abc":
            assert await verbs_of(saver, "async").values(thread(name)) == {"x": 4}
            assert len(await verbs_of(saver, "sync").list(thread(name))) == 5
