"""Order is `seq`: contiguous, in the order of the appends, whatever the clock or other writers do."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from threadkeep.errors import InvalidScope
from threadkeep.model import History, HistoryRange, Message
from threadkeep.scope import Scope
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


LONG = 53


async def _long_conversation(stores: StoresUnderTest) -> Scope:
    scope = new_scope()
    await say(stores.archive, scope, *(f"text {number}" for number in range(1, LONG + 1)))
    return scope


def _seqs(messages: tuple[Message, ...]) -> list[int]:
    return [message.seq for message in messages]


class PagingCases(WithStores):
    @pytest.mark.parametrize("size", [1, 7, 52, 53, 54])
    async def test_paging_back_yields_each_message_once(self, stores: StoresUnderTest, size: int) -> None:
        scope = await _long_conversation(stores)
        page = await stores.archive.messages(scope, HistoryRange(limit=size))
        seen = _seqs(page.messages)
        while page.before is not None:
            page = await stores.archive.messages(scope, HistoryRange(limit=size, before=page.before))
            assert page.messages
            seen = _seqs(page.messages) + seen
        assert seen == list(range(1, LONG + 1))

    async def test_messages_that_arrive_between_pages_do_not_disturb_paging(self, stores: StoresUnderTest) -> None:
        scope = await _long_conversation(stores)
        page = await stores.archive.messages(scope, HistoryRange(limit=10))
        seen = _seqs(page.messages)
        while page.before is not None:
            await say(stores.archive, scope, "new", "newer")
            page = await stores.archive.messages(scope, HistoryRange(limit=10, before=page.before))
            seen = _seqs(page.messages) + seen
        assert seen == list(range(1, LONG + 1))

    async def test_a_message_erased_between_pages_leaves_only_its_own_gap(self, stores: StoresUnderTest) -> None:
        scope = await _long_conversation(stores)
        page = await stores.archive.messages(scope, HistoryRange(limit=10))
        everything = await kept(stores.archive, scope)
        for seq in (page.messages[0].seq, page.messages[0].seq - 1, 1):
            await stores.archive.erase(scope, everything[seq - 1].id)
        rest = await stores.archive.messages(scope, HistoryRange(limit=100, before=page.before))
        assert _seqs(rest.messages) == list(range(2, LONG - 10))
        assert rest.before is None

    async def test_a_limit_past_the_end_reads_everything(self, stores: StoresUnderTest) -> None:
        scope = await _long_conversation(stores)
        history = await stores.archive.messages(scope, HistoryRange(limit=10_000))
        assert (_seqs(history.messages), history.before) == (list(range(1, LONG + 1)), None)

    @pytest.mark.parametrize("huge", [2**31, 2**63, 2**80])
    async def test_numbers_past_any_integer_column_are_only_large(self, stores: StoresUnderTest, huge: int) -> None:
        scope = await _long_conversation(stores)
        history = await stores.archive.messages(scope, HistoryRange(limit=huge, before=huge))
        assert _seqs(history.messages) == list(range(1, LONG + 1))

    @pytest.mark.parametrize("before", [0, 1, -5])
    async def test_there_is_nothing_before_the_first_message(self, stores: StoresUnderTest, before: int) -> None:
        scope = await _long_conversation(stores)
        history = await stores.archive.messages(scope, HistoryRange(limit=10, before=before))
        assert (history.messages, history.before) == ((), None)

    async def test_a_character_limit_keeps_the_newest_that_fit(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "a" * 50, "b" * 10, "ł" * 10, "😀" * 10)
        history = await stores.archive.messages(scope, HistoryRange(max_chars=30))
        assert (_seqs(history.messages), history.before) == ([2, 3, 4], 2)

    async def test_a_character_limit_never_hides_the_newest_message(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "short", "long " * 100)
        history = await stores.archive.messages(scope, HistoryRange(max_chars=1))
        assert _seqs(history.messages) == [2]

    async def test_a_character_limit_leaves_no_hole(self, stores: StoresUnderTest) -> None:
        """An older message that would fit does not come back past one that did not."""
        scope = new_scope()
        await say(stores.archive, scope, "tiny", "x" * 100, "last")
        history = await stores.archive.messages(scope, HistoryRange(max_chars=20))
        assert _seqs(history.messages) == [3]

    async def test_an_unknown_conversation_is_an_empty_history(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        history = await stores.archive.messages(scope, HistoryRange())
        assert history == History(scope.at(0), (), None, None)

    async def test_a_whole_user_has_no_history(self, stores: StoresUnderTest) -> None:
        with pytest.raises(InvalidScope):
            await stores.archive.messages(new_scope().whole_user, HistoryRange())
