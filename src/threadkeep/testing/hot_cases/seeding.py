"""A counter that is not certain is never guessed: one query to the archive seeds it, and no append can come between."""

from __future__ import annotations

import asyncio

import pytest

from threadkeep.errors import Conflict, ScopeErased, StoreUnavailable
from threadkeep.model import Message
from threadkeep.ports.hot import Seed
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, WithHot


class HotSeedingCases(WithHot):
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
