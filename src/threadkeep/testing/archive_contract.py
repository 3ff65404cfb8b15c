"""The contract of the `Archive` port, and of the `TermIndex` beside it: subclass, and give it `open_stores`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal

import pytest

from threadkeep.errors import InvalidInput, MemoryClosed, NotFound
from threadkeep.model import Conversation, ConversationChange, ConversationRecord, HistoryRange, Stats
from threadkeep.scope import Scope
from threadkeep.testing.archive_appends import ContentCases, OrderCases, PagingCases, RetryCases
from threadkeep.testing.archive_erasure import ErasureCases, GenerationCases
from threadkeep.testing.archive_placing import PlacingCases, SeedingCases
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import a_tenant, a_word, admitted, draft, found, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores

LOOK_ALIKES = [
    ("bob", "Bob"),
    ("résumé", "resume"),
    ("caf\u00e9", "cafe\u0301"),  # composed and decomposed
    ("tt", "tt "),
    ("tt", " tt"),
    ("straße", "strasse"),
    ("ı", "i"),
    ("ﬁn", "fin"),
    ("x" * 200, "x" * 199 + "X"),
    ("東京" * 100, "東京" * 99 + "東亰"),
    ("أحمد", "احمد"),
    ("a:b", "a/b"),
    ("{x}", "x"),
    ("a%", "a%%"),
    ("%", "_"),
    ("a_c", "abc"),
    ("a\\", "a"),
    ("'--", "''--"),
    ("1", "01"),
    ("None", "null"),
    ("😀", "😁"),
    ("a\u200bb", "ab"),  # zero-width space
]
Part = Literal["tenant", "user", "conversation"]


def _two(part: Part, one: str, other: str) -> tuple[Scope, Scope]:
    common = new_scope(a_tenant())
    return replace(common, **{part: one}), replace(common, **{part: other})


class IsolationCases(WithStores):
    """No scope reads, changes or erases the messages of another, however alike the ids look."""

    @pytest.mark.parametrize("part", ["tenant", "user", "conversation"])
    @pytest.mark.parametrize(("one", "other"), LOOK_ALIKES)
    async def test_ids_that_look_alike_are_two_scopes(
        self, stores: StoresUnderTest, part: Part, one: str, other: str
    ) -> None:
        mine, theirs = _two(part, one, other)
        await say(stores.archive, mine, "mine")
        await say(stores.archive, theirs, "theirs", "too")
        assert await texts(stores.archive, mine) == ["mine"]
        assert await texts(stores.archive, theirs) == ["theirs", "too"]
        assert (await stores.archive.stats(mine)).messages == 1
        await stores.archive.erase(mine)
        assert await texts(stores.archive, mine) == []
        assert await texts(stores.archive, theirs) == ["theirs", "too"]

    @pytest.mark.parametrize("name", sorted({name for pair in LOOK_ALIKES for name in pair}))
    async def test_a_conversation_id_comes_back_as_it_was_given(self, stores: StoresUnderTest, name: str) -> None:
        scope = new_scope(conversation=name)
        await say(stores.archive, scope, "hello")
        page = await stores.archive.conversations(scope.whole_user, None, 10)
        records = [record async for record in stores.archive.records(scope.whole_user)]
        assert [item.conversation for item in page] == [name]
        assert [(record.tenant, record.user, record.conversation) for record in records] == [
            (scope.tenant, scope.user, name)
        ]

    async def test_moving_a_separator_between_the_parts_makes_another_scope(self, stores: StoresUnderTest) -> None:
        user = new_scope().user
        places = [Scope("a:b", user, "c"), Scope("a", f"b:{user}", "c"), Scope("a", user, "b:c"), Scope("a", user, "c")]
        for number, place in enumerate(places):
            await say(stores.archive, place, f"text {number}")
        assert [await texts(stores.archive, place) for place in places] == [[f"text {n}"] for n in range(4)]

    async def test_equal_message_ids_in_two_scopes_do_not_clash(self, stores: StoresUnderTest) -> None:
        mine = new_scope()
        others = [mine.with_conversation("c2"), replace(mine, tenant="other"), new_scope()]
        for number, place in enumerate([mine, *others]):
            await stores.archive.append(place, admitted(draft(f"text {number}", "m1")))
        for number, place in enumerate([mine, *others]):
            assert [(m.id, m.content) for m in await kept(stores.archive, place)] == [("m1", f"text {number}")]

    async def test_erasing_a_message_leaves_its_namesake_in_another_conversation(self, stores: StoresUnderTest) -> None:
        mine, other = (scope := new_scope()), scope.with_conversation("c2")
        for place in (mine, other):
            await stores.archive.append(place, admitted(draft("text", "m1")))
        await stores.archive.erase(mine, "m1")
        assert await texts(stores.archive, mine) == []
        assert await texts(stores.archive, other) == ["text"]

    async def test_a_search_finds_only_what_is_ones_own(self, stores: StoresUnderTest) -> None:
        word, mine = a_word(), new_scope()
        others = [replace(mine, tenant="other"), replace(mine, user=mine.user.upper()), new_scope()]
        for place in (mine, *others):
            await say(stores.archive, place, f"{word} of {place.tenant} {place.user}")
        candidates = await found(stores.index, mine.whole_user, word)
        assert [candidate.message.content for candidate in candidates] == [f"{word} of {mine.tenant} {mine.user}"]

    async def test_a_search_in_one_conversation_leaves_out_the_others(self, stores: StoresUnderTest) -> None:
        word, mine = a_word(), new_scope()
        await say(stores.archive, mine, f"{word} here")
        await say(stores.archive, mine.with_conversation("c2"), f"{word} there")
        candidates = await found(stores.index, mine, word)
        assert [candidate.conversation for candidate in candidates] == ["c1"]

    async def test_a_change_reaches_one_conversation_only(self, stores: StoresUnderTest) -> None:
        mine = new_scope()
        theirs = replace(mine, tenant="other")
        for place in (mine, theirs):
            await say(stores.archive, place, "hello")
        await stores.archive.change(mine, ConversationChange(title="Mine", status="closed"))
        (their_page,) = await stores.archive.conversations(theirs.whole_user, None, 10)
        assert (their_page.title, their_page.status) == (None, "active")


async def _names(stores: StoresUnderTest, scope: Scope) -> list[str]:
    return [item.conversation for item in await stores.archive.conversations(scope.whole_user, None, 100)]


async def _only(stores: StoresUnderTest, scope: Scope) -> Conversation:
    (item,) = await stores.archive.conversations(scope.whole_user, None, 100)
    return item


class ConversationCases(WithStores):
    """A user's conversations: latest activity first, in pages, renamed, closed and reopened."""

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

    async def test_a_conversation_that_comes_up_while_listing_is_not_seen_twice(self, stores: StoresUnderTest) -> None:
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

    async def test_an_item_has_its_counts_and_times(self, stores: StoresUnderTest) -> None:
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


class CountingCases(WithStores):
    async def test_a_conversation_and_its_user_are_counted(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one", draft("two", role="assistant"), "three"))
        later = stores.clock.advance(60)
        await say(stores.archive, scope.with_conversation("c2"), "four")
        assert await stores.archive.stats(scope) == Stats(1, 1, 3, {"assistant": 1, "user": 2}, START, START)
        assert await stores.archive.stats(scope.whole_user) == Stats(1, 2, 4, {"assistant": 1, "user": 3}, START, later)

    async def test_an_unwritten_scope_counts_nothing(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        assert await stores.archive.stats(scope) == Stats(0, 0, 0)
        assert await stores.archive.stats(scope.whole_user) == Stats(0, 0, 0)

    async def test_the_whole_store_is_counted(self, stores: StoresUnderTest) -> None:
        before = await stores.archive.stats(None)
        for _ in range(3):
            await say(stores.archive, new_scope(), "one", "two")
        after = await stores.archive.stats(None)
        assert after.users - before.users == 3
        assert after.conversations - before.conversations == 3
        assert after.messages - before.messages == 6

    async def test_replays_and_erased_messages_are_not_counted(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two")
        for _ in range(3):
            await stores.archive.append(scope, turn, "k1")
            await stores.archive.append(scope, turn)
        await stores.archive.erase(scope, (await kept(stores.archive, scope))[0].id)
        stats = await stores.archive.stats(scope)
        assert (stats.conversations, stats.messages, dict(stats.by_role)) == (1, 1, {"user": 1})


async def _records(stores: StoresUnderTest, scope: Scope | None) -> list[ConversationRecord]:
    return [record async for record in stores.archive.records(scope)]


class RecordCases(WithStores):
    async def test_a_record_holds_the_whole_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(*(f"text {n}" for n in range(120))))
        ended = stores.clock.advance(5)
        await stores.archive.append(scope, admitted(draft("last", language="vi")))
        (record,) = await _records(stores, scope)
        assert record.messages == await kept(stores.archive, scope)
        assert (record.started_at, record.ended_at, record.language) == (START, ended, "vi")

    async def test_a_users_records_come_in_the_order_of_their_ids(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        names = ["b", "B", "a", "ä", "10", "9", "花", "z", "😀", "ｚ", "_", "a b", "a"]
        for name in names:
            await say(stores.archive, scope.with_conversation(name), name)
        records = await _records(stores, scope.whole_user)
        assert [record.conversation for record in records] == sorted(set(names))
        assert all(message.content == record.conversation for record in records for message in record.messages)

    async def test_one_conversations_record_comes_alone(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("c1", "c2"):
            await say(stores.archive, scope.with_conversation(name), "hello")
        assert [record.conversation for record in await _records(stores, scope)] == ["c1"]

    async def test_the_whole_stores_records_hold_everybody_in_order(self, stores: StoresUnderTest) -> None:
        scopes = [new_scope(tenant) for tenant in ("shop", "Shop", "hotel")]
        for scope in scopes:
            await say(stores.archive, scope, "hello")
        places = [(record.tenant, record.user, record.conversation) for record in await _records(stores, None)]
        assert places == sorted(places)
        assert {(scope.tenant, scope.user, "c1") for scope in scopes} <= set(places)

    async def test_a_conversation_erased_while_records_are_read_is_left_out(self, stores: StoresUnderTest) -> None:
        """And a conversation that takes the freed id does not appear in another user's export."""
        scope = new_scope()
        for name in ("a", "b", "c"):
            await say(stores.archive, scope.with_conversation(name), f"mine {name}")
        seen: list[str] = []
        async for record in stores.archive.records(scope.whole_user):
            if not seen:
                for name in ("c", "b"):
                    await stores.archive.erase(scope.with_conversation(name))
                    await say(stores.archive, new_scope(), "another's")
            seen += [message.content for message in record.messages]
        assert seen == ["mine a"]

    async def test_reading_may_stop_half_way(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("a", "b"):
            await say(stores.archive, scope.with_conversation(name), "hello")
        async for record in stores.archive.records(scope.whole_user):
            assert record.conversation == "a"
            break
        await say(stores.archive, scope, "still writable")


Verb = Callable[[StoresUnderTest, Scope], Awaitable[object]]


async def _first_record(stores: StoresUnderTest, scope: Scope) -> object:
    return [record async for record in stores.archive.records(scope)]


VERBS: dict[str, Verb] = {
    "append": lambda stores, scope: say(stores.archive, scope, "hello"),
    "messages": lambda stores, scope: stores.archive.messages(scope, HistoryRange()),
    "conversations": lambda stores, scope: stores.archive.conversations(scope.whole_user, None, 10),
    "change": lambda stores, scope: stores.archive.change(scope, ConversationChange(title="x")),
    "erase": lambda stores, scope: stores.archive.erase(scope),
    "stats": lambda stores, scope: stores.archive.stats(scope),
    "records": _first_record,
    "evidence": lambda stores, scope: found(stores.index, scope, "word"),
}


class ClosingCases(WithStores):
    """Closing twice is allowed; using what is closed is a typed error, never a hang."""

    async def test_the_archive_closes_twice_and_from_two_tasks(self, stores: StoresUnderTest) -> None:
        await say(stores.archive, new_scope(), "hello")
        await asyncio.gather(stores.archive.close(), stores.archive.close())
        await stores.archive.close()

    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
    async def test_a_verb_after_close_says_so(self, stores: StoresUnderTest, verb: Verb) -> None:
        await stores.archive.close()
        with pytest.raises(MemoryClosed):
            await verb(stores, new_scope())

    async def test_closing_while_tasks_write_and_read_leaves_no_task_hanging(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        writes = [say(stores.archive, scope, f"text {number}") for number in range(30)]
        reads = [stores.archive.messages(scope, HistoryRange()) for _ in range(30)]
        work = asyncio.gather(*writes, *reads, return_exceptions=True)
        await asyncio.sleep(0)
        await stores.archive.close()
        failures = [outcome for outcome in await work if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, MemoryClosed) for failure in failures)


class ArchiveContract(
    IsolationCases,
    OrderCases,
    RetryCases,
    ContentCases,
    PagingCases,
    ConversationCases,
    CountingCases,
    RecordCases,
    ErasureCases,
    GenerationCases,
    PlacingCases,
    SeedingCases,
    ClosingCases,
):
    """See `threadkeep.testing.stores` for the fixture."""
