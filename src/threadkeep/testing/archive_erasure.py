"""An erased message stays erased, however it is read and whichever late write would restore it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from threadkeep.errors import ScopeErased
from threadkeep.model import ConversationChange, ConversationRecord, HistoryRange
from threadkeep.scope import Scope
from threadkeep.testing.drafts import a_word, admitted, draft, found, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores

WORD = "peanuts"


async def _conversation(stores: StoresUnderTest, scope: Scope) -> None:
    """One conversation to be erased: `m1` holds the word, by id; a keyed turn holds it too."""
    await stores.archive.append(scope, admitted(draft(f"allergic to {WORD}", "m1", language="en"), draft("ok", "m2")))
    await stores.archive.append(scope, admitted(draft(f"no {WORD} please", "k1-0")), "k1")


async def _records(stores: StoresUnderTest, scope: Scope | None) -> list[ConversationRecord]:
    return [record async for record in stores.archive.records(scope)]


async def _assert_deleted(stores: StoresUnderTest, scope: Scope) -> None:
    history = await stores.archive.messages(scope, HistoryRange())
    assert (history.messages, history.language, history.before) == ((), None, None)
    assert not await found(stores.index, scope, f"{WORD} ok")
    assert scope.conversation not in [c.conversation for c in await stores.archive.conversations(scope, None, 100)]
    assert (await stores.archive.stats(scope)).messages == 0
    assert await _records(stores, scope) == []


class ErasureCases(WithStores):
    """An erased message stays erased, however it is read and whichever late write would restore it."""

    async def test_an_erased_conversation_is_deleted_and_its_neighbour_stays(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        other = scope.with_conversation("c2")
        await _conversation(stores, scope)
        await _conversation(stores, other)
        proof = await stores.archive.erase(scope)
        await _assert_deleted(stores, scope)
        assert proof.complete
        assert (proof.stores["archive"].found, proof.stores["archive"].removed) == (3, 3)
        assert len(await texts(stores.archive, other)) == 3

    async def test_an_erased_user_is_deleted_from_every_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(5)]
        for scope_of_user in places:
            await _conversation(stores, scope_of_user)
        proof = await stores.archive.erase(scope.whole_user)
        for scope_of_user in (*places, scope.whole_user.with_conversation("c0")):
            await _assert_deleted(stores, scope_of_user)
        assert proof.stores["archive"].removed == 15
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_erasing_one_user_leaves_the_others_as_they_were(self, stores: StoresUnderTest) -> None:
        gone = new_scope()
        others = [new_scope(), replace(gone, tenant="other"), replace(gone, user=f"{gone.user} ")]
        for scope_of_user in (gone, *others):
            await _conversation(stores, scope_of_user)
            await stores.archive.change(scope_of_user, ConversationChange(title="Food"))
        before = [await _records(stores, scope_of_user) for scope_of_user in others]
        await stores.archive.erase(gone.whole_user)
        assert [await _records(stores, scope_of_user) for scope_of_user in others] == before
        for scope_of_user in others:
            assert len(await found(stores.index, scope_of_user, WORD)) == 2

    async def test_an_erased_message_is_deleted_and_the_rest_keeps_its_seq(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        proof = await stores.archive.erase(scope, "m1")
        history = await stores.archive.messages(scope, HistoryRange())
        (record,) = await _records(stores, scope)
        assert [(m.seq, m.id) for m in history.messages] == [(2, "m2"), (3, "k1-0")]
        assert record.messages == history.messages
        assert [c.message.id for c in await found(stores.index, scope, WORD)] == ["k1-0"]
        assert (await stores.archive.stats(scope)).messages == 2
        assert (proof.stores["archive"].removed, proof.complete) == (1, True)

    async def test_the_seq_of_an_erased_last_message_is_not_given_again(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one", draft("two", "m2")))
        await stores.archive.erase(scope, "m2")
        assert (await say(stores.archive, scope, "three")).seq == 3

    @pytest.mark.parametrize("erased", ["message", "conversation", "user"])
    async def test_a_late_retry_by_message_id_does_not_bring_it_back(
        self, stores: StoresUnderTest, erased: str
    ) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        await stores.archive.erase(
            scope.whole_user if erased == "user" else scope, "m1" if erased == "message" else None
        )
        receipt = await stores.archive.append(scope, admitted(draft(f"allergic to {WORD}", "m1"), "something new"))
        assert dict(receipt.refused) == {"erased": 1}
        assert len(receipt.kept) == 1
        assert f"allergic to {WORD}" not in await texts(stores.archive, scope)
        assert "something new" in await texts(stores.archive, scope)

    @pytest.mark.parametrize("key", [None, "k2"])
    async def test_a_late_retry_brings_not_even_the_empty_conversation_back(
        self, stores: StoresUnderTest, key: str | None
    ) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        await stores.archive.erase(scope.whole_user)
        for _ in range(2):
            receipt = await stores.archive.append(scope, admitted(draft("ok", "m2")), key)
            assert (receipt.seq, receipt.kept, dict(receipt.refused)) == (0, (), {"erased": 1})
        await _assert_deleted(stores, scope)
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    @pytest.mark.parametrize("erased", ["conversation", "user"])
    async def test_a_late_retry_by_key_is_refused(self, stores: StoresUnderTest, erased: str) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        await stores.archive.erase(scope.whole_user if erased == "user" else scope)
        with pytest.raises(ScopeErased):
            await stores.archive.append(scope, admitted(draft(f"no {WORD} please", "k1-0")), "k1")
        await _assert_deleted(stores, scope)

    async def test_a_late_retry_by_key_does_not_bring_an_erased_message_back(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "k1-0"), draft("two", "k1-1"))
        first = await stores.archive.append(scope, turn, "k1")
        await stores.archive.erase(scope, "k1-0")
        assert await stores.archive.append(scope, turn, "k1") == first
        assert await texts(stores.archive, scope) == ["two"]

    async def test_a_message_that_arrives_after_its_erasure_is_refused(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        proof = await stores.archive.erase(scope, "m1")
        receipt = await stores.archive.append(scope, admitted(draft("late", "m1")))
        assert (proof.stores["archive"].found, receipt.kept, dict(receipt.refused)) == (0, (), {"erased": 1})
        assert await texts(stores.archive, scope) == []

    async def test_the_same_ids_elsewhere_are_not_held_back(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        await stores.archive.erase(scope.whole_user)
        await _conversation(stores, neighbour := new_scope())
        assert len(await texts(stores.archive, neighbour)) == 3

    async def test_erasing_twice_finds_nothing_the_second_time(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _conversation(stores, scope)
        for target in (scope, scope.whole_user):
            await stores.archive.erase(target)
            again = await stores.archive.erase(target)
            assert (again.stores["archive"].found, again.stores["archive"].removed, again.complete) == (0, 0, True)

    async def test_an_erased_scope_can_be_used_again(self, stores: StoresUnderTest) -> None:
        scope, word = new_scope(), a_word()
        await _conversation(stores, scope)
        await stores.archive.change(scope, ConversationChange(title="Food", status="closed", intent="eat"))
        await stores.archive.erase(scope)
        receipt = await say(stores.archive, scope, f"hello {word}")
        (record,) = await _records(stores, scope)
        assert (receipt.seq, record.title, record.language, record.intent, record.status) == (
            1,
            None,
            None,
            None,
            "active",
        )
        assert len(await found(stores.index, scope, word)) == 1


async def _stamped(stores: StoresUnderTest, scope: Scope) -> Scope:
    return (await stores.archive.messages(scope, HistoryRange(limit=1))).scope


class GenerationCases(WithStores):
    @pytest.mark.parametrize("whole_user", [False, True], ids=["conversation", "user"])
    async def test_an_append_begun_before_an_erasure_is_refused(
        self, stores: StoresUnderTest, whole_user: bool
    ) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope.whole_user if whole_user else scope)
        with pytest.raises(ScopeErased):
            await say(stores.archive, stamped, "late")
        with pytest.raises(ScopeErased):
            await stores.archive.append(stamped, admitted(refused={"thought": 1}))
        assert await texts(stores.archive, scope) == []
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_an_unwritten_scope_can_be_erased_ahead_of_late_work(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope.whole_user)
        with pytest.raises(ScopeErased):
            await say(stores.archive, stamped, "late")

    async def test_a_title_made_from_erased_text_is_refused(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope)
        await say(stores.archive, scope, "a new beginning")
        with pytest.raises(ScopeErased):
            await stores.archive.change(stamped, ConversationChange(title="all about one"))
        (item,) = await stores.archive.conversations(scope.whole_user, None, 10)
        assert item.title is None

    async def test_every_erasure_raises_the_generation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        seen = [(await _stamped(stores, scope)).generation or 0]
        for target in (scope, scope.whole_user, scope, scope, scope.whole_user):
            await stores.archive.erase(target)
            seen.append((await _stamped(stores, scope)).generation or 0)
        assert seen == sorted(set(seen))

    async def test_the_proof_has_the_generation_that_reads_see(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.erase(scope.whole_user)
        proof = await stores.archive.erase(scope)
        assert proof.generation == (await _stamped(stores, scope)).generation

    async def test_erasing_one_conversation_leaves_work_on_another_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        neighbours = [scope.with_conversation("c2"), new_scope()]
        stamped = [await _stamped(stores, place) for place in neighbours]
        await stores.archive.erase(scope)
        for place in stamped:
            await say(stores.archive, place, "still welcome")

    async def test_erasing_a_message_leaves_work_on_its_conversation_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        receipt = await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope, receipt.kept[0])
        assert (await say(stores.archive, stamped, "two")).seq == 2

    async def test_a_scope_stamped_after_the_erasure_is_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for number in range(3):
            stamped = await _stamped(stores, scope)
            assert (await say(stores.archive, stamped, f"text {number}")).seq == 1
            await stores.archive.erase(stamped)

    async def test_an_older_scope_can_still_erase(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope)
        await say(stores.archive, scope, "new")
        assert (await stores.archive.erase(stamped)).complete
        assert await texts(stores.archive, scope) == []

    async def test_appends_that_race_an_erasure_are_erased_or_refused(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        work = [say(stores.archive, stamped, f"text {number}") for number in range(40)]
        erasure = stores.archive.erase(scope.whole_user)
        outcomes = await asyncio.gather(*work[:20], erasure, *work[20:], return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, ScopeErased) for failure in failures)
        assert await texts(stores.archive, scope) == []
