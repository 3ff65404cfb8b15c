"""Order is `seq`: contiguous, in the order of the appends, whatever the clock or other writers do."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores

WRITERS = 20
APPENDS = 6


class OrderCases(WithStores):
    async def test_the_first_message_has_seq_one(self, stores: StoresUnderTest) -> None:
        receipt = await say(stores.archive, new_scope(), "hello")
        assert receipt.seq == 1

    async def test_drafts_of_one_append_stay_in_their_order(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        receipt = await say(stores.archive, scope, *(f"text {n}" for n in range(50)))
        messages = await kept(stores.archive, scope)
        assert [m.content for m in messages] == [f"text {n}" for n in range(50)]
        assert [m.id for m in messages] == list(receipt.kept)
        assert receipt.seq == 50

    async def test_many_tasks_get_contiguous_seq_and_each_keeps_its_own_order(self, stores: StoresUnderTest) -> None:
        scope = new_scope()

        async def write(writer: int) -> None:
            for number in range(APPENDS):
                await say(stores.archive, scope, f"{writer} {number} a", f"{writer} {number} b")

        await asyncio.gather(*map(write, range(WRITERS)))
        messages = await kept(stores.archive, scope)
        assert [m.seq for m in messages] == list(range(1, WRITERS * APPENDS * 2 + 1))
        for writer in range(WRITERS):
            own = [m.content for m in messages if m.content.startswith(f"{writer} ")]
            assert own == [f"{writer} {number} {half}" for number in range(APPENDS) for half in "ab"]

    async def test_two_tasks_never_interleave_inside_one_append(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        receipts = await asyncio.gather(*(say(stores.archive, scope, *[f"w{w}"] * 5) for w in range(WRITERS)))
        contents = await texts(stores.archive, scope)
        assert sorted(receipt.seq for receipt in receipts) == list(range(5, WRITERS * 5 + 1, 5))
        assert all(len(set(contents[start : start + 5])) == 1 for start in range(0, WRITERS * 5, 5))

    async def test_tasks_that_open_many_conversations_at_once_all_succeed(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        names = [f"c{number}" for number in range(WRITERS)]
        places = [scope.with_conversation(name) for name in names for _ in range(3)]
        await asyncio.gather(*(say(stores.archive, place, "hello") for place in places))
        page = await stores.archive.conversations(scope.whole_user, None, 100)
        assert {item.conversation: item.messages for item in page} == dict.fromkeys(names, 3)

    async def test_equal_and_backward_times_do_not_change_the_order(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        times = [START, START, START - timedelta(days=400), START + timedelta(days=1), START - timedelta(seconds=1)]
        for number, ts in enumerate(times):
            stores.clock.now = ts
            await stores.archive.append(scope, admitted(draft(f"text {number}", ts=ts)))
        messages = await kept(stores.archive, scope)
        assert [m.content for m in messages] == [f"text {number}" for number in range(5)]
        assert [m.ts for m in messages] == times

    async def test_an_append_of_nothing_answers_with_the_last_seq(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        nothing = admitted(refused={"thought": 2})
        before = await stores.archive.append(scope, nothing)
        await say(stores.archive, scope, "one", "two")
        after = await stores.archive.append(scope, nothing)
        assert (before.seq, before.kept, dict(before.refused)) == (0, (), {"thought": 2})
        assert (after.seq, after.kept, dict(after.refused)) == (2, (), {"thought": 2})
