"""Cases of the hot store's contract: how appends are numbered, retried, and seeded from the archive."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from threadkeep.errors import Conflict, InvalidScope, ScopeErased, StoreUnavailable
from threadkeep.model import Message, Receipt
from threadkeep.ports.sessions import Seed
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import HotUnderTest, WithHot


class HotOrderCases(WithHot):
    """`seq` is one counter for each conversation, whichever process appends and however many at once."""

    async def test_the_first_append_is_queued_under_the_first_numbers(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipt = await store.say(scope, "one", "two")
        assert (receipt.status, receipt.seq, len(receipt.kept), receipt.replayed) == ("queued", 2, 2, False)
        assert await store.everything(scope) == [(1, "one"), (2, "two")]

    async def test_fifty_tasks_get_numbers_without_gap_or_double(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipts = await asyncio.gather(*(store.say(scope, f"text {n}", f"more {n}") for n in range(50)))
        assert sorted(receipt.seq for receipt in receipts) == list(range(2, 101, 2))
        found = await store.everything(scope)
        assert [seq for seq, _ in found] == list(range(1, 101))
        by_seq = dict(found)
        for number, receipt in enumerate(receipts):
            assert (by_seq[receipt.seq - 1], by_seq[receipt.seq]) == (f"text {number}", f"more {number}")

    async def test_conversations_count_apart(self, store: HotUnderTest) -> None:
        scope = new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(20)]
        receipts = await asyncio.gather(*(store.say(place, "hello") for place in places))
        assert [receipt.seq for receipt in receipts] == [1] * 20

    async def test_an_append_of_nothing_answers_with_the_last_number(self, store: HotUnderTest) -> None:
        scope = new_scope()
        assert (await store.hot.append(scope, admitted())).seq == 0
        assert await store.hot.read(scope) is None
        await store.say(scope, "one", "two")
        empty = await store.hot.append(scope, admitted(refused={"tool_result": 3}))
        assert (empty.seq, empty.kept, empty.refused) == (2, (), {"tool_result": 3})
        assert len(await store.entries_of(scope)) == 1

    async def test_a_thousand_messages_are_one_append(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipt = await store.say(scope, *(f"text {number}" for number in range(1_000)))
        assert (receipt.seq, len(await store.everything(scope))) == (1_000, 1_000)
        (entry,) = await store.entries_of(scope)
        assert [message.seq for message in entry.messages] == list(range(1, 1_001))
        await store.journal.settle([entry])
        assert (await store.now(scope)).pending == ()

    async def test_the_newest_number_is_returned(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, *(f"text {number}" for number in range(30)))
        assert (await store.now(scope)).last_seq == 30

    async def test_roles_times_and_fields_come_back(self, store: HotUnderTest) -> None:
        scope = new_scope()
        meta: dict[str, Any] = {"mime": "audio/ogg", "durationMs": 12.5, "n": 12345678901234567, "empty": []}
        voice = draft("a greeting", "m1", modality="voice", language="vi", meta=meta)
        await store.hot.append(scope, admitted(voice, draft("hello", "m2", role="assistant")))
        first, second = (await store.now(scope)).window
        assert (first.id, first.role, first.modality, first.language, dict(first.meta), first.ts) == (
            *("m1", "user", "voice", "vi", meta),
            voice.ts,
        )
        assert (second.id, second.role, second.modality, second.language, dict(second.meta)) == (
            *("m2", "assistant", "text", None),
            {},
        )
        (entry,) = await store.entries_of(scope)
        assert entry.messages == (first, second)

    async def test_it_works_on_one_conversation(self, store: HotUnderTest) -> None:
        user = new_scope().whole_user
        with pytest.raises(InvalidScope):
            await store.say(user, "hello")
        with pytest.raises(InvalidScope):
            await store.hot.read(user)


class HotRetryCases(WithHot):
    """The same append twice is one append; something else under the same name is a conflict."""

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


class HotSeedingCases(WithHot):
    """A counter that is not certain is never guessed: one query to the archive seeds it, and no append can come
    between.
    """

    async def test_a_new_conversation_begins_at_one_after_one_query_of_the_archive(self, store: HotUnderTest) -> None:
        scope = new_scope()
        for number in range(1, 4):
            assert (await store.say(scope, "hello")).seq == number
        assert store.archive.asked == 1
        assert (await store.now(scope)).whole

    async def test_a_conversation_that_the_archive_knows_continues_past_it(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 40, generation=2, language="pl-PL")
        first = await store.say(scope, "hello")
        assert first.seq > 41
        assert (await store.say(scope, "again")).seq == first.seq + 1
        found = await store.now(scope)
        assert (found.language, found.scope.generation, found.whole) == ("pl-PL", 2, False)
        assert {entry.scope.generation for entry in await store.entries_of(scope)} == {2}

    async def test_a_window_that_has_been_filled_since_is_whole_again(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 40)
        await store.say(scope, *(f"text {number}" for number in range(25)))
        assert (await store.now(scope)).whole

    async def test_two_that_seed_at_once_share_one_counter(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 40)
        both = await store.archive.shut_until_asked(10, *(store.say(scope, f"text {n}") for n in range(10)))
        store.archive.answer()
        seqs = sorted([receipt.seq for receipt in await asyncio.gather(*both)])
        assert seqs == list(range(seqs[0], seqs[0] + 10))

    async def test_an_archive_that_does_not_answer_is_not_guessed_at(self, store: HotUnderTest) -> None:
        """A conversation that the store knows continues without it, but not in a generation that it does not know."""
        scope = new_scope()
        assert (await store.say(scope, "hello")).seq == 1
        store.archive.failure = StoreUnavailable("the archive is down")
        assert (await store.say(scope, "it is not needed any more")).seq == 2
        with pytest.raises(StoreUnavailable):
            await store.say(scope.at(4), "it is needed here")
        assert len(await store.entries_of(scope)) == 2

    async def test_a_conversation_begun_without_the_archive_is_refused_or_of_no_known_generation(
        self, store: HotUnderTest
    ) -> None:
        scope = new_scope()
        store.archive.failure = StoreUnavailable("the archive is down")
        try:
            first = (await store.say(scope, "hello")).seq
        except StoreUnavailable:
            assert await store.hot.read(scope) is None
            return
        store.archive.failure = None
        store.archive.knows(scope, 40, generation=2)
        assert (await store.say(scope, "again")).seq == first + 1 > 41
        assert [entry.scope.generation for entry in await store.entries_of(scope)] == [None, 2]

    async def test_an_answer_from_before_an_erase_is_not_taken(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.knows(scope, 40)
        (late,) = await store.archive.shut_until_asked(1, store.say(scope, "hello"))
        await store.hot.erase(scope, generation=1)
        store.archive.knows(scope, 0, generation=1)
        store.archive.answer()
        assert (await late).seq == 1
        assert store.archive.asked == 2
        (entry,) = await store.entries_of(scope)
        assert entry.scope.generation == 1

    async def test_what_others_wrote_to_the_archive_is_passed(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one", "two")
        await store.hot.seed(scope, Seed(last_seq=1_500))
        after = await store.say(scope, "three")
        assert after.seq > 1_500
        await store.hot.seed(scope, Seed(last_seq=10))
        assert (await store.say(scope, "four")).seq == after.seq + 1
        assert [text for _, text in await store.everything(scope)] == ["one", "two", "three", "four"]

    async def test_a_seed_of_a_newer_generation_purges_what_is_hot(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        await store.hot.seed(scope, Seed(generation=3))
        assert await store.hot.read(scope) is None
        assert await store.entries_of(scope) == []
        assert (await store.say(scope, "two")).seq == 1

    async def test_a_scope_that_knows_of_an_erase_we_missed_makes_us_ask(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        store.archive.knows(scope, 0, generation=4)
        assert (await store.say(scope.at(4), "two")).seq == 1
        with pytest.raises(ScopeErased):
            await store.say(scope.at(3), "three")
        assert await store.everything(scope) == [(1, "two")]

    async def test_a_session_is_opened_in_the_generation_that_the_archive_knows(self, store: HotUnderTest) -> None:
        """Of a user who was erased once, in a store that has lost its memory since."""
        scope = new_scope()
        store.archive.knows(scope, 0, generation=2)
        begun = (await store.hot.touch(scope)).scope
        assert (await store.say(begun, "one")).seq == 1
        assert (await store.say(begun, "two")).seq == 2
        assert {entry.scope.generation for entry in await store.entries_of(scope)} == {2}

    async def test_a_session_is_opened_while_the_archive_is_unavailable(self, store: HotUnderTest) -> None:
        scope = new_scope()
        store.archive.failure = StoreUnavailable("the archive is down")
        assert (await store.hot.touch(scope)).window == ()

    async def test_another_message_at_a_number_that_is_taken_is_a_conflict(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one", "two")
        with pytest.raises(Conflict):
            await store.hot.refresh(scope, [Message(2, "another", "user", "other", START)])
        assert await store.everything(scope) == [(1, "one"), (2, "two")]

    async def test_what_the_archive_placed_moves_the_counter_on(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        await store.hot.refresh(scope, [Message(1_010, "m", "user", "placed", START)])
        assert (await store.say(scope, "two")).seq == 1_011
        assert [text for _, text in await store.everything(scope)] == ["one", "placed", "two"]
