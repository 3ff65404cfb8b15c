"""Delete means gone: by every way of reading, and by every way of coming back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from threadkeep.errors import ScopeErased
from threadkeep.model import ConversationChange, HistoryRange
from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope
from threadkeep.testing.drafts import a_word, admitted, draft, found, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores

WORD = "peanuts"


async def _told(stores: StoresUnderTest, scope: Scope) -> None:
    """One talk to be erased: `m1` holds the word, by id; a keyed turn holds it too."""
    await stores.archive.append(scope, admitted(draft(f"allergic to {WORD}", "m1", language="en"), draft("ok", "m2")))
    await stores.archive.append(scope, admitted(draft(f"no {WORD} please", "k1-0")), "k1")


async def _records(stores: StoresUnderTest, scope: Scope | None) -> list[ConversationRecord]:
    return [record async for record in stores.archive.records(scope)]


async def _assert_gone(stores: StoresUnderTest, scope: Scope) -> None:
    history = await stores.archive.messages(scope, HistoryRange())
    assert (history.messages, history.language, history.before) == ((), None, None)
    assert not await found(stores.index, scope, f"{WORD} ok")
    assert scope.conversation not in [c.conversation for c in await stores.archive.conversations(scope, None, 100)]
    assert (await stores.archive.stats(scope)).messages == 0
    assert await _records(stores, scope) == []


class ErasureCases(WithStores):
    async def test_an_erased_conversation_is_gone_and_its_neighbour_stays(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        other = scope.with_conversation("c2")
        await _told(stores, scope)
        await _told(stores, other)
        proof = await stores.archive.erase(scope)
        await _assert_gone(stores, scope)
        assert proof.complete
        assert (proof.stores["archive"].found, proof.stores["archive"].removed) == (3, 3)
        assert len(await texts(stores.archive, other)) == 3

    async def test_an_erased_user_is_gone_from_every_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(5)]
        for place in places:
            await _told(stores, place)
        proof = await stores.archive.erase(scope.whole_user)
        for place in (*places, scope.whole_user.with_conversation("c0")):
            await _assert_gone(stores, place)
        assert proof.stores["archive"].removed == 15
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_erasing_one_user_leaves_the_others_as_they_were(self, stores: StoresUnderTest) -> None:
        gone = new_scope()
        others = [new_scope(), replace(gone, tenant="other"), replace(gone, user=f"{gone.user} ")]
        for place in (gone, *others):
            await _told(stores, place)
            await stores.archive.change(place, ConversationChange(title="Food"))
        before = [await _records(stores, place) for place in others]
        await stores.archive.erase(gone.whole_user)
        assert [await _records(stores, place) for place in others] == before
        for place in others:
            assert len(await found(stores.index, place, WORD)) == 2

    async def test_an_erased_message_is_gone_and_the_rest_keeps_its_place(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _told(stores, scope)
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
        await _told(stores, scope)
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
        await _told(stores, scope)
        await stores.archive.erase(scope.whole_user)
        for _ in range(2):
            receipt = await stores.archive.append(scope, admitted(draft("ok", "m2")), key)
            assert (receipt.seq, receipt.kept, dict(receipt.refused)) == (0, (), {"erased": 1})
        await _assert_gone(stores, scope)
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    @pytest.mark.parametrize("erased", ["conversation", "user"])
    async def test_a_late_retry_by_key_is_refused(self, stores: StoresUnderTest, erased: str) -> None:
        scope = new_scope()
        await _told(stores, scope)
        await stores.archive.erase(scope.whole_user if erased == "user" else scope)
        with pytest.raises(ScopeErased):
            await stores.archive.append(scope, admitted(draft(f"no {WORD} please", "k1-0")), "k1")
        await _assert_gone(stores, scope)

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
        await _told(stores, scope)
        await stores.archive.erase(scope.whole_user)
        await _told(stores, neighbour := new_scope())
        assert len(await texts(stores.archive, neighbour)) == 3

    async def test_erasing_twice_finds_nothing_the_second_time(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _told(stores, scope)
        for target in (scope, scope.whole_user):
            await stores.archive.erase(target)
            again = await stores.archive.erase(target)
            assert (again.stores["archive"].found, again.stores["archive"].removed, again.complete) == (0, 0, True)

    async def test_an_erased_place_can_be_used_again(self, stores: StoresUnderTest) -> None:
        scope, word = new_scope(), a_word()
        await _told(stores, scope)
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
