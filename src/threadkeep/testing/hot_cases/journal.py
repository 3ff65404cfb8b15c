"""Every queued append is handed out at least once, and until it is settled it is never lost."""

from __future__ import annotations

import asyncio

from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, OpenHot, WithHot


class JournalCases(WithHot):
    async def test_an_entry_carries_all_that_the_archive_needs(self, store: HotUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), draft("two", "m2"), refused={"thought": 1})
        receipt = await store.hot.append(scope, turn, "k")
        (entry,) = await store.entries_of(scope)
        assert entry.scope == scope.at(0)
        assert [(m.seq, m.id, m.content) for m in entry.messages] == [(1, "m1", "one"), (2, "m2", "two")]
        assert (entry.receipt, entry.payload, entry.key) == (receipt, turn.digest, scope.digest("key", "k"))
        assert entry.queued_at is not None

    async def test_workers_share_the_entries_and_none_gets_anothers(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await asyncio.gather(*(store.say(scope.with_conversation(f"c{n}"), "hello") for n in range(40)))
        claimed: list[str] = []
        for number in range(60):
            entries = await store.journal.claim(f"worker {number % 3}", 3)
            claimed += [e.scope.conversation or "" for e in entries if e.scope.user == scope.user]
        assert sorted(claimed) == sorted(f"c{number}" for number in range(40))

    async def test_what_a_dead_worker_held_is_handed_out_again(self, open_hot: OpenHot) -> None:
        async with open_hot(stale_seconds=0) as store:
            scope = new_scope()
            await store.say(scope, "hello")
            first = [e for e in await store.journal.claim("dies", 1_000) if e.scope.user == scope.user]
            again = [e for e in await store.journal.claim("lives", 1_000) if e.scope.user == scope.user]
            assert (len(first), again) == (1, first)
            await store.journal.settle(again)
            assert [e for e in await store.journal.claim("third", 1_000) if e.scope.user == scope.user] == []

    async def test_settling_twice_is_settling_once(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "hello")
        entries = await store.entries_of(scope)
        await asyncio.gather(store.journal.settle(entries), store.journal.settle(entries))
        assert await store.window(scope) == ["hello"]

    async def test_a_worker_that_waits_is_woken(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.entries_of(scope)
        waiting = asyncio.create_task(store.journal.claim("waits", 10, wait=30))
        await asyncio.sleep(0)
        await store.say(scope, "hello")
        assert [entry.scope.user for entry in await asyncio.wait_for(waiting, 20)] == [scope.user]

    async def test_a_worker_does_not_wait_longer_than_it_said(self, store: HotUnderTest) -> None:
        await store.entries_of(new_scope())
        assert await asyncio.wait_for(store.journal.claim("waits", 10, wait=0.05), 20) == []

    async def test_the_depth_counts_what_is_not_settled(self, store: HotUnderTest) -> None:
        scope = new_scope()
        before = await store.journal.depth()
        await store.say(scope, "one")
        await store.say(scope, "two")
        entries = await store.entries_of(scope)
        during = await store.journal.depth()
        assert (during.entries, during.dead) == (before.entries + 2, before.dead)
        assert during.claimed >= 2
        assert during.oldest_seconds >= 0
        await store.journal.settle(entries)
        assert (await store.journal.depth()).entries == before.entries

    async def test_a_mark_of_what_is_not_settled_does_not_move_with_later_entries(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        mark = await store.journal.unsettled()
        await store.say(scope, "two")
        assert await store.journal.unsettled(mark) == mark
        assert await store.journal.unsettled() != mark
        await store.journal.settle(await store.entries_of(scope))

    async def test_a_parked_entry_is_a_dead_letter_with_its_reason(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "poison")
        (entry,) = await store.entries_of(scope)
        assert await store.journal.park(entry, "the column is too short") is True
        assert await store.journal.park(entry, "again") is False
        assert await store.entries_of(scope) == []
        (letter,) = [one for one in await store.journal.dead(10_000) if one.entry and one.entry.scope == entry.scope]
        assert (letter.reason, letter.entry and letter.entry.messages) == ("the column is too short", entry.messages)

    async def test_a_dead_letter_is_still_pending_and_can_be_replayed(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "poison")
        (entry,) = await store.entries_of(scope)
        await store.journal.park(entry, "no")
        await store.say(scope, *(f"text {number}" for number in range(30)))
        assert (await store.everything(scope))[0] == (1, "poison")
        ids = [one.id for one in await store.journal.dead(10_000) if one.entry and one.entry.scope == entry.scope]
        assert await store.journal.replay(ids) == 1
        assert await store.journal.replay(ids) == 0
        entries = await store.entries_of(scope)
        assert sorted(m.seq for e in entries for m in e.messages) == list(range(1, 32))
        await store.journal.settle(entries)
        assert (await store.now(scope)).pending == ()

    async def test_a_dropped_dead_letter_never_returns(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "poison")
        (entry,) = await store.entries_of(scope)
        await store.journal.park(entry, "no")
        ids = [one.id for one in await store.journal.dead(10_000) if one.entry and one.entry.scope == entry.scope]
        assert (await store.journal.drop(ids), await store.journal.drop(ids)) == (1, 0)
        await store.say(scope, *(f"text {number}" for number in range(30)))
        assert (await store.everything(scope))[0] == (2, "text 0")

    async def test_dead_letters_go_with_an_erase(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "poison")
        (entry,) = await store.entries_of(scope)
        await store.journal.park(entry, "no")
        await store.hot.erase(scope)
        assert [one for one in await store.journal.dead(10_000) if one.entry and one.entry.scope == entry.scope] == []

    async def test_an_entry_erased_in_a_workers_hands_cannot_be_parked(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "secret")
        (entry,) = await store.entries_of(scope)
        await store.hot.erase(scope)
        assert await store.journal.park(entry, "too late") is False
