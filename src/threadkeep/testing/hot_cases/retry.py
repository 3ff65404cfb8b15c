"""The same append twice is one append; something else under the same name is a conflict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from threadkeep.errors import Conflict, ScopeErased, StoreUnavailable
from threadkeep.model import Receipt
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, WithHot


class HotRetryCases(WithHot):
    async def test_a_key_used_again_brings_the_first_receipt(self, store: HotUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), draft("two", "m2"), refused={"thought": 2})
        first = await store.hot.append(scope, turn, "k")
        await store.say(scope, "in between")
        again = await store.hot.append(scope, turn, "k")
        assert (again, first.replayed, again.replayed) == (first, False, True)
        assert await store.window(scope) == ["one", "two", "in between"]
        assert len(await store.entries_of(scope)) == 2

    async def test_a_key_used_by_many_at_once_is_one_append(self, store: HotUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"))
        receipts = await asyncio.gather(*(store.hot.append(scope, turn, "k") for _ in range(20)))
        assert len({receipt.seq for receipt in receipts}) == 1
        assert sum(not receipt.replayed for receipt in receipts) == 1
        assert await store.everything(scope) == [(1, "one")]

    async def test_a_key_with_another_payload_is_a_conflict(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted(draft("one", "m1")), "k")
        with pytest.raises(Conflict):
            await store.hot.append(scope, admitted(draft("other", "m2")), "k")
        assert await store.everything(scope) == [(1, "one")]

    async def test_a_key_belongs_to_its_conversation(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted("one"), "k")
        assert (await store.hot.append(scope.with_conversation("c2"), admitted("two"), "k")).replayed is False

    async def test_a_message_id_with_the_same_content_is_not_stored_twice(self, store: HotUnderTest) -> None:
        scope = new_scope()
        first = await store.hot.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        again = await store.hot.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        mixed = await store.hot.append(scope, admitted(draft("two", "m2"), draft("three", "m3")))
        assert (first.seq, again.seq, mixed.seq) == (2, 2, 3)
        assert await store.everything(scope) == [(1, "one"), (2, "two"), (3, "three")]

    async def test_a_message_id_twice_in_one_append_is_one_message(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipt = await store.hot.append(scope, admitted(draft("one", "m1"), draft("one", "m1")))
        assert (receipt.seq, await store.everything(scope)) == (1, [(1, "one")])

    @pytest.mark.parametrize("role", ["user", "assistant"])
    async def test_a_message_id_with_other_content_is_a_conflict(self, store: HotUnderTest, role: str) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted(draft("one", "m1")))
        other = draft("other" if role == "user" else "one", "m1", role=role)
        with pytest.raises(Conflict):
            await store.hot.append(scope, admitted("new", other))
        assert await store.everything(scope) == [(1, "one")]

    async def test_a_message_id_is_known_while_it_is_pending_and_no_longer(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted(draft("one", "m1")))
        await store.say(scope, *(f"text {number}" for number in range(30)))
        assert (await store.hot.append(scope, admitted(draft("one", "m1")))).seq == 1
        await store.journal.settle(await store.entries_of(scope))
        # The archive knows it from now on, and is queried about an id that the caller chose.
        store.archive.knows(scope, 31, messages={"m1": (1, "user", "one")})
        assert (await store.hot.append(scope, admitted(draft("one", "m1")))).seq == 1
        with pytest.raises(Conflict):
            await store.hot.append(scope, admitted(draft("other", "m1")))
        assert await store.entries_of(scope) == []

    async def test_ids_made_for_the_append_are_not_looked_up(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, *(f"text {number}" for number in range(30)))
        store.archive.failure = AssertionError("no query is needed")
        assert (await store.hot.append(scope, replace(admitted("new"), new_ids=True))).seq == 31

    async def test_an_id_that_cannot_be_looked_up_is_taken_for_new(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, *(f"text {number}" for number in range(30)))
        store.archive.failure = StoreUnavailable("the archive is down")
        assert (await store.hot.append(scope, admitted(draft("one", "m1")))).seq == 31

    async def test_a_conversation_that_only_the_archive_has_is_not_stored_twice(self, store: HotUnderTest) -> None:
        scope = new_scope()
        known = {"m1": (1, "user", "one"), "m2": (2, "user", "two")}
        store.archive.knows(scope, 2, messages=known)
        with pytest.raises(Conflict):
            await store.hot.append(scope, admitted(draft("other", "m1")))
        again = await store.hot.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        assert (again.seq, again.kept) == (2, ("m1", "m2"))
        new = await store.hot.append(scope, admitted(draft("two", "m2"), draft("three", "m3")))
        assert await store.everything(scope) == [(new.seq, "three")]
        assert [[m.id for m in entry.messages] for entry in await store.entries_of(scope)] == [["m3"]]

    async def test_a_key_that_only_the_archive_remembers_is_answered_as_it_was(self, store: HotUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"))
        first = Receipt("queued", 7, ("m1",))
        store.archive.knows(scope, 7, payload=turn.digest, receipt=first)
        again = await store.hot.append(scope, turn, "k")
        assert (again, again.replayed) == (first, True)
        with pytest.raises(Conflict):
            await store.hot.append(scope, admitted(draft("other", "m2")), "k")
        assert await store.hot.read(scope) is None
        assert await store.entries_of(scope) == []

    async def test_what_only_the_archive_knows_to_be_erased_is_not_kept_again(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 0, generation=1, erased=frozenset({"m1"}))
        for _ in range(2):
            receipt = await store.hot.append(scope, admitted(draft("one", "m1")))
            assert (receipt.seq, receipt.kept, dict(receipt.refused)) == (0, (), {"erased": 1})
        assert await store.hot.read(scope) is None
        for text in ("two", "three"):  # known here, or not: ids that a caller chose are always looked up after an erase
            receipt = await store.hot.append(scope, admitted(draft("one", "m1"), text))
            assert (len(receipt.kept), dict(receipt.refused)) == (1, {"erased": 1})
        assert await store.window(scope) == ["two", "three"]

    async def test_a_key_that_the_archive_knows_to_be_erased_is_refused(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 0, generation=1, key_erased=True)
        with pytest.raises(ScopeErased):
            await store.hot.append(scope, admitted(draft("one", "m1")), "k")
        assert await store.hot.read(scope) is None
