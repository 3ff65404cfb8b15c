"""A retry stores nothing twice and answers as the first call did; another payload is a `Conflict`, whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from threadkeep.errors import Conflict
from threadkeep.model import Draft
from threadkeep.testing.drafts import admitted, draft, found, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores


class RetryCases(WithStores):
    async def test_the_same_key_stores_once_and_answers_the_same(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two", refused={"thought": 1})
        first = await stores.archive.append(scope, turn, "k1")
        await say(stores.archive, scope, "three")
        again = await stores.archive.append(scope, turn, "k1")
        assert again == first
        assert (first.replayed, again.replayed) == (False, True)
        assert await texts(stores.archive, scope) == ["one", "two", "three"]

    async def test_many_tasks_with_the_same_key_store_once(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two")
        receipts = await asyncio.gather(*(stores.archive.append(scope, turn, "k1") for _ in range(20)))
        assert all(receipt == receipts[0] for receipt in receipts)
        assert sum(not receipt.replayed for receipt in receipts) == 1
        assert await texts(stores.archive, scope) == ["one", "two"]

    async def test_the_same_key_with_another_payload_is_a_conflict(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one"), "k1")
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted("other"), "k1")
        assert await texts(stores.archive, scope) == ["one"]

    async def test_a_key_counts_in_its_own_conversation_only(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        places = [scope, scope.with_conversation("c2"), replace(scope, tenant="other"), new_scope()]
        for number, place in enumerate(places):
            await stores.archive.append(place, admitted(f"text {number}"), "k1")
        assert [await texts(stores.archive, place) for place in places] == [[f"text {n}"] for n in range(4)]

    @pytest.mark.parametrize(("one", "other"), [("k", "K"), ("k", "k "), ("é", "e"), ("a:b", "a/b"), ("x" * 255, "x")])
    async def test_keys_that_look_alike_are_two_keys(self, stores: StoresUnderTest, one: str, other: str) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one"), one)
        await stores.archive.append(scope, admitted("other"), other)
        assert await texts(stores.archive, scope) == ["one", "other"]

    async def test_a_key_whose_events_were_all_refused_is_remembered_too(self, stores: StoresUnderTest) -> None:
        scope, nothing = new_scope(), admitted(refused={"tool_result": 1})
        first = await stores.archive.append(scope, nothing, "k1")
        await say(stores.archive, scope, "later")
        assert await stores.archive.append(scope, nothing, "k1") == first
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted("now something"), "k1")

    async def test_the_same_message_ids_store_once_and_answer_the_same(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), draft("two", "m2"))
        first = await stores.archive.append(scope, turn)
        assert await stores.archive.append(scope, turn) == first
        assert [(m.seq, m.id) for m in await kept(stores.archive, scope)] == [(1, "m1"), (2, "m2")]

    async def test_many_tasks_with_the_same_message_id_store_once(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"))
        receipts = await asyncio.gather(*(stores.archive.append(scope, turn) for _ in range(20)))
        assert {(receipt.seq, receipt.kept) for receipt in receipts} == {(1, ("m1",))}
        assert await texts(stores.archive, scope) == ["one"]

    @pytest.mark.parametrize("other", [draft("other", "m2"), draft("two", "m2", role="assistant")])
    async def test_one_conflicting_draft_leaves_nothing_of_its_append(
        self, stores: StoresUnderTest, other: Draft
    ) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        conflicting = admitted(draft("dragonfruit", "m3"), other, draft("four", "m4"))
        with pytest.raises(Conflict):
            await stores.archive.append(scope, conflicting, "k1")
        receipt = await say(stores.archive, scope, "five")
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two"), (3, "five")]
        assert receipt.seq == 3
        assert (await stores.archive.stats(scope)).messages == 3
        assert not await found(stores.index, scope, "dragonfruit")

    async def test_a_key_that_met_a_conflict_is_free_again(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1")))
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted(draft("other", "m1")), "k1")
        assert (await stores.archive.append(scope, admitted(draft("two", "m2")), "k1")).seq == 2

    async def test_a_conflict_in_a_new_conversation_does_not_create_it(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted(draft("one", "m1"), draft("other", "m1")))
        assert len(await stores.archive.conversations(scope.whole_user, None, 10)) == 0
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_what_is_new_beside_a_known_message_takes_the_next_seq(self, stores: StoresUnderTest) -> None:
        scope, known = new_scope(), draft("one", "m1")
        await stores.archive.append(scope, admitted(known, "two"))
        receipt = await stores.archive.append(scope, admitted(known, draft("three", "m3")))
        assert (receipt.seq, receipt.kept) == (3, ("m1", "m3"))
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two"), (3, "three")]

    async def test_a_message_given_twice_in_one_append_is_stored_once(self, stores: StoresUnderTest) -> None:
        scope, twice = new_scope(), draft("one", "m1")
        await stores.archive.append(scope, admitted(twice, twice, "two"))
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two")]
        assert (await stores.archive.stats(scope)).messages == 2
