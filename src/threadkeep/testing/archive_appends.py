"""Cases of the archive's contract: what is appended is stored once, in order, as it was given."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from threadkeep.errors import Conflict, InvalidScope
from threadkeep.events import Origin
from threadkeep.model import Draft, History, HistoryRange, Message
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, found, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores

WRITERS = 20
APPENDS = 6


class OrderCases(WithStores):
    """Order is `seq`: contiguous, in the order of the appends, whatever the clock or other writers do."""

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


class RetryCases(WithStores):
    """A retry stores nothing twice and answers as the first call did; another payload is a `Conflict`, whole."""

    async def test_the_same_key_stores_once_and_answers_the_same(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two", refused={"thought": 1})
        first = await stores.archive.append(scope, turn, "k1")
        await say(stores.archive, scope, "three")
        again = await stores.archive.append(scope, turn, "k1")
        assert again == first
        assert (first.replayed, again.replayed) == (False, True)
        assert await texts(stores.archive, scope) == ["one", "two", "three"]

    async def test_many_tasks_with_the_same_key_store_once(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two")
        receipts = await asyncio.gather(*(stores.archive.append(scope, turn, "k1") for _ in range(20)))
        assert all(receipt == receipts[0] for receipt in receipts)
        assert sum(not receipt.replayed for receipt in receipts) == 1
        assert await texts(stores.archive, scope) == ["one", "two"]

    async def test_the_same_key_with_another_payload_is_a_conflict(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one"), "k1")
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted("other"), "k1")
        assert await texts(stores.archive, scope) == ["one"]

    async def test_a_key_counts_in_its_own_conversation_only(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        places = [scope, scope.with_conversation("c2"), replace(scope, tenant="other"), new_scope()]
        for number, place in enumerate(places):
            await stores.archive.append(place, admitted(f"text {number}"), "k1")
        assert [await texts(stores.archive, place) for place in places] == [[f"text {n}"] for n in range(4)]

    @pytest.mark.parametrize(("one", "other"), [("k", "K"), ("k", "k "), ("é", "e"), ("a:b", "a/b"), ("x" * 255, "x")])
    async def test_keys_that_look_alike_are_two_keys(self, stores: StoresUnderTest, one: str, other: str) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one"), one)
        await stores.archive.append(scope, admitted("other"), other)
        assert await texts(stores.archive, scope) == ["one", "other"]

    async def test_a_key_whose_events_were_all_refused_is_remembered_too(self, stores: StoresUnderTest) -> None:
        scope, nothing = new_scope(), admitted(refused={"tool_result": 1})
        first = await stores.archive.append(scope, nothing, "k1")
        await say(stores.archive, scope, "later")
        assert await stores.archive.append(scope, nothing, "k1") == first
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted("now something"), "k1")

    async def test_the_same_message_ids_store_once_and_answer_the_same(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), draft("two", "m2"))
        first = await stores.archive.append(scope, turn)
        assert await stores.archive.append(scope, turn) == first
        assert [(m.seq, m.id) for m in await kept(stores.archive, scope)] == [(1, "m1"), (2, "m2")]

    async def test_many_tasks_with_the_same_message_id_store_once(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"))
        receipts = await asyncio.gather(*(stores.archive.append(scope, turn) for _ in range(20)))
        assert {(receipt.seq, receipt.kept) for receipt in receipts} == {(1, ("m1",))}
        assert await texts(stores.archive, scope) == ["one"]

    @pytest.mark.parametrize("other", [draft("other", "m2"), draft("two", "m2", role="assistant")])
    async def test_one_conflicting_draft_leaves_nothing_of_its_append(
        self, stores: StoresUnderTest, other: Draft
    ) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        conflicting = admitted(draft("dragonfruit", "m3"), other, draft("four", "m4"))
        with pytest.raises(Conflict):
            await stores.archive.append(scope, conflicting, "k1")
        receipt = await say(stores.archive, scope, "five")
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two"), (3, "five")]
        assert receipt.seq == 3
        assert (await stores.archive.stats(scope)).messages == 3
        assert not await found(stores.index, scope, "dragonfruit")

    async def test_a_key_that_met_a_conflict_is_free_again(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1")))
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted(draft("other", "m1")), "k1")
        assert (await stores.archive.append(scope, admitted(draft("two", "m2")), "k1")).seq == 2

    async def test_a_conflict_in_a_new_conversation_does_not_create_it(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted(draft("one", "m1"), draft("other", "m1")))
        assert len(await stores.archive.conversations(scope.whole_user, None, 10)) == 0
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_what_is_new_beside_a_known_message_takes_the_next_seq(self, stores: StoresUnderTest) -> None:
        scope, known = new_scope(), draft("one", "m1")
        await stores.archive.append(scope, admitted(known, "two"))
        receipt = await stores.archive.append(scope, admitted(known, draft("three", "m3")))
        assert (receipt.seq, receipt.kept) == (3, ("m1", "m3"))
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two"), (3, "three")]

    async def test_a_message_given_twice_in_one_append_is_stored_once(self, stores: StoresUnderTest) -> None:
        scope, twice = new_scope(), draft("one", "m1")
        await stores.archive.append(scope, admitted(twice, twice, "two"))
        assert [(m.seq, m.content) for m in await kept(stores.archive, scope)] == [(1, "one"), (2, "two")]
        assert (await stores.archive.stats(scope)).messages == 2


TEXTS = {
    "a lone surrogate": "before \ud83d after",
    "surrogates that only look like a pair": "\ud83d\ude00",
    "NUL": "a\0b\0",
    "control characters": "\x01\x1b[31m\x7f\x85\u2028",
    "line ends": "a\nb\r\nc\rd\te",
    "surrounding space": "  two spaces and a tab\t\n",
    "four-byte emoji": "👩‍👩‍👧‍👦 🇻🇳 🏳️‍🌈",
    "composed marks": "Ti\u1ebfng Vi\u1ec7t",
    "decomposed marks": "Tie\u0302\u0301ng Vie\u0323\u0302t",
    "many marks on one letter": "z" + "\u0301" * 300,
    "right to left": "مرحبا \u202eabc\u202c שלום",
    "Chinese beyond the basic plane": "𠮷野家 花生",
    "Polish": "Zażółć gęślą jaźń",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "a byte-order mark": "\ufeffhello",
    "quotes and wildcards": "'; DROP TABLE x; -- \" \\ % _ ` $1 :a ?",
    "JSON": '{"role": "system", "a": [1, null]}',
    "a digit string": "0012",
    "100,000 characters": "xin chào " * 11_111 + "!",
    "one long word": "ł" * 100_000,
}

VIETNAM = timezone(timedelta(hours=7))
NEW_YORK = ZoneInfo("America/New_York")
TIMES = {
    "+07:00": datetime(2026, 1, 1, 3, 30, tzinfo=VIETNAM),
    "-05:00": datetime(2026, 1, 1, 22, 30, 0, 1, tzinfo=timezone(timedelta(hours=-5))),
    "+05:45": datetime(2026, 1, 1, 0, 0, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    "seconds in the offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(seconds=1234))),
    "microseconds": datetime(2026, 5, 6, 7, 8, 9, 123_457, tzinfo=UTC),
    "the last microsecond": datetime(2026, 5, 6, 23, 59, 59, 999_999, tzinfo=UTC),
    "before the clock goes back": datetime(2025, 11, 2, 1, 30, tzinfo=NEW_YORK),
    "after the clock goes back": datetime(2025, 11, 2, 1, 30, tzinfo=NEW_YORK, fold=1),
    "in the hour that is skipped": datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK),
    "before 1970": datetime(1905, 6, 30, 12, 0, 0, 7, tzinfo=UTC),
    "long from now": datetime(2999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
}


class ContentCases(WithStores):
    """What is read is what was kept: every character, every instant, every field."""

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_text_comes_back_exactly(self, stores: StoresUnderTest, text: str) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft(text, "m1")))
        (message,) = await kept(stores.archive, scope)
        (record,) = [record async for record in stores.archive.records(scope)]
        assert message.content == text
        assert record.messages[0].content == text

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_a_retry_knows_its_text_again(self, stores: StoresUnderTest, text: str) -> None:
        scope, turn = new_scope(), admitted(draft(text, "m1"))
        first = await stores.archive.append(scope, turn)
        assert await stores.archive.append(scope, turn) == first

    @pytest.mark.parametrize("ts", TIMES.values(), ids=TIMES.keys())
    async def test_a_time_comes_back_as_the_same_instant(self, stores: StoresUnderTest, ts: datetime) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("hello", ts=ts)))
        (message,) = await kept(stores.archive, scope)
        # In UTC on both sides: two times of one zone are compared by the clock on the wall.
        assert message.ts.astimezone(UTC) == ts.astimezone(UTC)
        assert message.ts.utcoffset() is not None

    async def test_every_field_of_a_message_is_kept(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        meta = {"language": "vi", "mime": "audio/ogg", "durationMs": 12.5, "sha256": "0" * 64}
        voice = draft("a spoken greeting", "m1", modality="voice", language="vi", meta=meta)
        answer = draft("hello", "m2", role="assistant", language="en-GB")
        await stores.archive.append(scope, admitted(voice, answer))
        first, second = await kept(stores.archive, scope)
        assert (first.id, first.role, first.modality, first.language, dict(first.meta)) == (
            "m1",
            "user",
            "voice",
            "vi",
            meta,
        )
        assert (second.id, second.role, second.modality, second.language, dict(second.meta)) == (
            "m2",
            "assistant",
            "text",
            "en-GB",
            {},
        )

    @pytest.mark.parametrize("id", ["x" * 255, "tin nhắn 1", "消息", "a:b/c{d}%_", "'\"\\", "😀"])
    async def test_a_message_id_comes_back_as_it_was_given(self, stores: StoresUnderTest, id: str) -> None:
        scope = new_scope()
        receipt = await stores.archive.append(scope, admitted(draft("hello", id)))
        (message,) = await kept(stores.archive, scope)
        assert (receipt.kept, message.id) == ((id,), id)

    @pytest.mark.parametrize(("one", "other"), [("m", "M"), ("é", "e"), ("caf\u00e9", "cafe\u0301"), ("m", "m ")])
    async def test_message_ids_that_look_alike_are_two_messages(
        self, stores: StoresUnderTest, one: str, other: str
    ) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", one), draft("other", other)))
        assert [(m.id, m.content) for m in await kept(stores.archive, scope)] == [(one, "one"), (other, "other")]

    @pytest.mark.parametrize(
        "origin",
        [
            Origin("user"),
            Origin("model", "agent"),
            Origin("operator", "http", "key:abcdefghijkl"),
            Origin("import", "cli"),
        ],
        ids=str,
    )
    async def test_who_wrote_a_message_and_when_it_arrived_come_back(
        self, stores: StoresUnderTest, origin: Origin
    ) -> None:
        scope, arrived = new_scope(), datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
        await stores.archive.append(scope, admitted(draft("hello", origin=origin, stored_at=arrived), draft("unknown")))
        one, other = await kept(stores.archive, scope)
        assert (one.origin, one.stored_at) == (origin, arrived)
        assert (other.origin, other.stored_at) == (None, None)
