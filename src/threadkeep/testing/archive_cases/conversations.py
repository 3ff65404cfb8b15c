"""A user's conversations: latest activity first, in pages, renamed, closed and reopened."""

from __future__ import annotations

import pytest

from threadkeep.errors import InvalidInput, NotFound
from threadkeep.model import Conversation, ConversationChange, HistoryRange
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores


async def _names(stores: StoresUnderTest, scope: Scope) -> list[str]:
    return [item.conversation for item in await stores.archive.conversations(scope.whole_user, None, 100)]


async def _only(stores: StoresUnderTest, scope: Scope) -> Conversation:
    (item,) = await stores.archive.conversations(scope.whole_user, None, 100)
    return item


class ConversationCases(WithStores):
    async def test_the_latest_activity_comes_first_even_in_one_instant(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("a", "b", "c", "a"):
            await say(stores.archive, scope.with_conversation(name), "hello")
        assert await _names(stores, scope) == ["a", "c", "b"]

    async def test_a_clock_set_back_does_not_change_which_activity_was_last(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope.with_conversation("a"), "hello")
        stores.clock.advance(-3_600)
        await say(stores.archive, scope.with_conversation("b"), "hello")
        assert await _names(stores, scope) == ["b", "a"]

    async def test_erased_messages_do_not_confuse_which_activity_was_last(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("a", "b", "c"):
            await say(stores.archive, scope.with_conversation(name), "one", "two", "three")
        for message in (await kept(stores.archive, scope.with_conversation("c")))[1:]:
            await stores.archive.erase(scope.with_conversation("c"), message.id)
        await say(stores.archive, scope.with_conversation("a"), "four")
        assert await _names(stores, scope) == ["a", "c", "b"]

    @pytest.mark.parametrize("size", [1, 3, 10, 11])
    async def test_paging_yields_each_conversation_once(self, stores: StoresUnderTest, size: int) -> None:
        scope = new_scope()
        for number in range(10):
            await say(stores.archive, scope.with_conversation(f"c{number}"), "hello")
        page = await stores.archive.conversations(scope.whole_user, None, size)
        seen = [item.conversation for item in page]
        while page.after is not None:
            page = await stores.archive.conversations(scope.whole_user, page.after, size)
            assert len(page)
            seen += [item.conversation for item in page]
        assert seen == [f"c{number}" for number in reversed(range(10))]

    async def test_a_conversation_that_comes_up_meanwhile_is_not_seen_twice(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for number in range(6):
            await say(stores.archive, scope.with_conversation(f"c{number}"), "hello")
        first = await stores.archive.conversations(scope.whole_user, None, 3)
        await say(stores.archive, scope.with_conversation("c4"), "again")
        await say(stores.archive, scope.with_conversation("new"), "hello")
        second = await stores.archive.conversations(scope.whole_user, first.after, 10)
        assert [item.conversation for item in second] == ["c2", "c1", "c0"]

    @pytest.mark.parametrize("cursor", ["", "x", "1", "1.", "-1.1", "1.x", "٣.٣", "9" * 400, "1.1.1", "'"])
    async def test_a_cursor_it_did_not_make_is_refused(self, stores: StoresUnderTest, cursor: str) -> None:
        with pytest.raises(InvalidInput):
            await stores.archive.conversations(new_scope().whole_user, cursor, 10)

    async def test_a_user_without_conversations_has_an_empty_page(self, stores: StoresUnderTest) -> None:
        page = await stores.archive.conversations(new_scope().whole_user, None, 10)
        assert (page.items, page.after) == ((), None)

    async def test_an_item_tells_its_counts_and_times(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one", "two")
        later = stores.clock.advance(90)
        await say(stores.archive, scope, "three")
        assert await _only(stores, scope) == Conversation("c1", None, None, "active", 3, START, later)

    @pytest.mark.parametrize("title", ["Khách sạn ở Huế", "花生 🥜", "", "a\0b", "lone \ud83d", "x" * 255])
    async def test_a_title_is_kept_exactly(self, stores: StoresUnderTest, title: str) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "hello")
        await stores.archive.change(scope, ConversationChange(title=title))
        (record,) = [record async for record in stores.archive.records(scope)]
        assert ((await _only(stores, scope)).title, record.title) == (title, title)

    async def test_a_change_leaves_alone_what_it_does_not_name(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("hello", language="vi")))
        await stores.archive.change(scope, ConversationChange(title="Trip", intent="book a room"))
        await stores.archive.change(scope, ConversationChange(status="closed"))
        item = await _only(stores, scope)
        (record,) = [record async for record in stores.archive.records(scope)]
        assert (item.title, item.language, item.status) == ("Trip", "vi", "closed")
        assert (record.intent, record.status) == ("book a room", "closed")

    async def test_a_new_message_reopens_a_closed_conversation(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one")
        await stores.archive.append(scope, turn, "k1")
        await stores.archive.change(scope, ConversationChange(status="closed"))
        await stores.archive.append(scope, turn, "k1")
        assert (await _only(stores, scope)).status == "closed"  # a replay is no new message
        await say(stores.archive, scope, "two")
        assert (await _only(stores, scope)).status == "active"

    async def test_closing_twice_and_reopening_by_hand_are_allowed(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        for status in ("closed", "closed", "active"):
            await stores.archive.change(scope, ConversationChange(status=status))
            assert (await _only(stores, scope)).status == status

    async def test_changing_an_unknown_conversation_is_not_found(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "hello")
        with pytest.raises(NotFound):
            await stores.archive.change(scope.with_conversation("C1"), ConversationChange(title="x"))
        assert await _names(stores, scope) == ["c1"]

    async def test_the_first_language_named_is_the_conversations(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "no language")
        for language in ("pl", "vi"):
            await stores.archive.append(scope, admitted(draft("hello", language=language)))
        history = await stores.archive.messages(scope, HistoryRange())
        assert (history.language, (await _only(stores, scope)).language) == ("pl", "pl")
