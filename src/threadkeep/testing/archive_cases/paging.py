"""Reading back through a long conversation: each message once, in order, whatever arrives meanwhile."""

from __future__ import annotations

import pytest

from threadkeep.errors import InvalidScope
from threadkeep.model import History, HistoryRange, Message
from threadkeep.scope import Scope
from threadkeep.testing.drafts import kept, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores

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

    async def test_messages_that_arrive_meanwhile_do_not_disturb_paging(self, stores: StoresUnderTest) -> None:
        scope = await _long_conversation(stores)
        page = await stores.archive.messages(scope, HistoryRange(limit=10))
        seen = _seqs(page.messages)
        while page.before is not None:
            await say(stores.archive, scope, "new", "newer")
            page = await stores.archive.messages(scope, HistoryRange(limit=10, before=page.before))
            seen = _seqs(page.messages) + seen
        assert seen == list(range(1, LONG + 1))

    async def test_a_message_erased_meanwhile_leaves_only_its_own_gap(self, stores: StoresUnderTest) -> None:
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
