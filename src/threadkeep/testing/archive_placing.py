"""Cases of the archive's contract: what a journal brings to it, and what a hot store learns from it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import cast

import pytest

from threadkeep.errors import Conflict, InvalidScope, ScopeErased
from threadkeep.events import Origin
from threadkeep.model import HistoryRange, Message, Receipt
from threadkeep.ports.archive import Archive, ArchiveWithPlacing, Entry, KeyedReceipt
from threadkeep.ports.sessions import Seed
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import a_word, admitted, draft, found, kept, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores


def message(seq: int, content: str | None = None, id: str | None = None, **more: object) -> Message:
    made = draft(content or f"text {seq}", id or f"m{seq}")
    return replace(Message(seq, made.id, made.role, made.content, made.ts), **more)  # pyright: ignore[reportArgumentType]


def entry(scope: Scope, *messages: Message, key: KeyedReceipt | None = None) -> Entry:
    return Entry(scope, messages, START, key)


def keyed(scope: Scope, key: str, *messages: Message, payload: bytes = b"p" * 16) -> Entry:
    receipt = Receipt("queued", messages[-1].seq if messages else 0, tuple(m.id for m in messages))
    return entry(scope, *messages, key=KeyedReceipt(scope.digest("key", key), payload, receipt))


def placing(archive: Archive) -> ArchiveWithPlacing:
    assert hasattr(archive, "place")
    return cast("ArchiveWithPlacing", archive)


async def _outcomes(stores: StoresUnderTest, *entries: Entry) -> list[str]:
    return [placed.outcome for placed in await placing(stores.archive).place(entries)]


async def _at(stores: StoresUnderTest, scope: Scope) -> list[tuple[int, str]]:
    return [(m.seq, m.id) for m in await kept(stores.archive, scope)]


class PlacingCases(WithStores):
    """`place` brings to the archive what a journal has ordered: idempotent, entry by entry, whatever the rest holds."""

    async def test_origin_and_arrival_come_with_the_message(self, stores: StoresUnderTest) -> None:
        scope, origin = new_scope(), Origin("model", "agent", "key:abcdefghijkl")
        placed = message(1, origin=origin, stored_at=START + timedelta(days=2))
        await placing(stores.archive).place([entry(scope, placed)])
        (found_,) = await kept(stores.archive, scope)
        assert (found_.origin, found_.stored_at) == (origin, START + timedelta(days=2))

    async def test_messages_stand_under_the_seq_they_come_with(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        (placed,) = await placing(stores.archive).place([entry(scope, message(7), message(9))])
        assert (placed.outcome, placed.stored, placed.duplicates, placed.dropped) == ("stored", 2, 0, 0)
        assert await _at(stores, scope) == [(7, "m7"), (9, "m9")]
        assert await placing(stores.archive).last_seq(scope) == 9
        assert (await say(stores.archive, scope, "next")).seq == 10

    async def test_every_field_and_the_conversations_own_are_kept(self, stores: StoresUnderTest) -> None:
        scope, at = new_scope(), START - timedelta(days=3)
        said = message(1, "a spoken greeting", modality="voice", language="vi", meta={"mime": "audio/ogg"})
        await placing(stores.archive).place([Entry(scope, (said,), at)])
        assert await kept(stores.archive, scope) == (said,)
        (item,) = await stores.archive.conversations(scope.whole_user, None, 10)
        assert (item.started_at, item.last_activity_at, item.language, item.messages) == (at, at, "vi", 1)

    async def test_a_placed_message_is_found_by_what_it_says(self, stores: StoresUnderTest) -> None:
        scope, word = new_scope(), a_word()
        await placing(stores.archive).place([entry(scope, message(1, f"about {word}"))])
        assert [candidate.message.id for candidate in await found(stores.index, scope, word)] == ["m1"]

    async def test_the_same_entry_again_changes_nothing(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        one = keyed(scope, "k1", message(1), message(2))
        assert await _outcomes(stores, one) == ["stored"]
        assert await _outcomes(stores, one, replace(one, key=None)) == ["duplicate", "duplicate"]
        assert (await stores.archive.stats(scope)).messages == 2

    async def test_an_entry_twice_in_one_batch_is_stored_once(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        one, key = entry(scope, message(1)), keyed(scope, "k1", message(2))
        assert await _outcomes(stores, one, one, key, key) == ["stored", "duplicate", "stored", "duplicate"]
        assert await _at(stores, scope) == [(1, "m1"), (2, "m2")]

    async def test_what_is_new_beside_what_is_known_is_stored(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _outcomes(stores, entry(scope, message(1)))
        (placed,) = await placing(stores.archive).place([entry(scope, message(1), message(2))])
        assert (placed.outcome, placed.stored, placed.duplicates) == ("stored", 1, 1)

    async def test_entries_may_come_out_of_order(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await _outcomes(stores, entry(scope, message(5), message(6)))
        await _outcomes(stores, entry(scope, message(1), message(2)), entry(scope, message(3)))
        assert [seq for seq, _ in await _at(stores, scope)] == [1, 2, 3, 5, 6]
        assert await placing(stores.archive).last_seq(scope) == 6

    async def test_a_message_whose_seq_is_taken_gets_the_next_and_a_replay_finds_it_there(
        self, stores: StoresUnderTest
    ) -> None:
        scope, other = new_scope(), new_scope()
        await _outcomes(stores, entry(scope, message(1), message(2)))
        batch = (
            entry(other, message(1)),
            entry(scope, message(3), message(2, id="another")),
            entry(scope, message(4)),
            entry(scope, message(4, id="yet another")),
        )
        placed = await placing(stores.archive).place(batch)
        assert [(one.outcome, one.moved) for one in placed] == [
            ("stored", False),
            ("stored", True),
            ("stored", True),
            ("stored", True),
        ]
        everything = [(1, "m1"), (2, "m2"), (3, "m3"), (4, "another"), (5, "m4"), (6, "yet another")]
        assert await _at(stores, scope) == everything
        assert await _at(stores, other) == [(1, "m1")]
        assert await _outcomes(stores, *batch) == ["duplicate"] * 4
        assert await _at(stores, scope) == everything
        assert (await say(stores.archive, scope, "next")).seq > 6  # a hot store that is seeded anew may jump

    async def test_what_was_appended_together_is_moved_together_and_its_key_answers_with_the_new_seq(
        self, stores: StoresUnderTest
    ) -> None:
        scope, turn = new_scope(), admitted(draft("hello", "q"), draft("hi", "a"))
        await _outcomes(stores, entry(scope, message(1), message(2)))
        await _outcomes(
            stores, keyed(scope, "k1", message(2, "hello", "q"), message(3, "hi", "a"), payload=turn.digest)
        )
        assert await _at(stores, scope) == [(1, "m1"), (2, "m2"), (3, "q"), (4, "a")]
        assert (await stores.archive.append(scope, turn, "k1")).seq == 4

    async def test_an_entry_that_contradicts_itself_makes_no_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        assert await _outcomes(stores, entry(scope, message(1), message(2, "other", "m1"))) == ["conflict"]
        assert len(await stores.archive.conversations(scope.whole_user, None, 10)) == 0

    async def test_a_message_that_stands_elsewhere_is_a_duplicate_unless_its_content_differs(
        self, stores: StoresUnderTest
    ) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("hello", "m1")))
        batch = entry(scope, message(5, "hello", "m1")), entry(scope, message(6, "other", "m1"))
        assert await _outcomes(stores, *batch) == ["duplicate", "conflict"]
        assert await _at(stores, scope) == [(1, "m1")]

    async def test_a_placed_key_answers_a_later_append(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("hello", "m1"))
        one = keyed(scope, "k1", message(3, "hello", "m1"), payload=turn.digest)
        await _outcomes(stores, one)
        assert one.key is not None
        replayed = await stores.archive.append(scope, turn, "k1")
        assert (replayed, replayed.replayed) == (one.key.receipt, True)
        with pytest.raises(Conflict):
            await stores.archive.append(scope, admitted("other"), "k1")

    async def test_a_key_that_the_archive_has_is_a_duplicate_or_a_conflict(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("hello", "m1"))
        await stores.archive.append(scope, turn, "k1")
        same = keyed(scope, "k1", message(8, "hello", "m1"), payload=turn.digest)
        other = keyed(scope, "k1", message(9, "other", "m9"))
        assert await _outcomes(stores, same, other) == ["duplicate", "conflict"]
        assert await _at(stores, scope) == [(1, "m1")]

    async def test_a_key_without_messages_is_remembered(self, stores: StoresUnderTest) -> None:
        scope, nothing = new_scope(), admitted(refused={"thought": 1})
        await _outcomes(stores, keyed(scope, "k1", payload=nothing.digest))
        assert (await stores.archive.append(scope, nothing, "k1")).replayed

    @pytest.mark.parametrize("whole_user", [False, True], ids=["conversation", "user"])
    async def test_entries_of_an_older_generation_are_dropped_and_leave_nothing(
        self, stores: StoresUnderTest, whole_user: bool
    ) -> None:
        scope, other = new_scope(), new_scope()
        stamped = (await stores.archive.messages(scope, HistoryRange())).scope
        await stores.archive.erase(scope.whole_user if whole_user else scope)
        placed = await placing(stores.archive).place([entry(stamped, message(1)), entry(other.at(0), message(1))])
        assert [(one.outcome, one.dropped) for one in placed] == [("dropped", 1), ("stored", 0)]
        assert (await stores.archive.stats(scope.whole_user)).users == 0
        assert await _outcomes(stores, entry(scope.at(1), message(2))) == ["stored"]

    async def test_erased_messages_are_dropped_and_the_rest_is_placed(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.erase(scope, "m1")
        assert await _outcomes(stores, entry(scope, message(1))) == ["dropped"]
        assert len(await stores.archive.conversations(scope.whole_user, None, 10)) == 0
        (placed,) = await placing(stores.archive).place([entry(scope, message(1), message(2))])
        assert (placed.outcome, placed.stored, placed.dropped) == ("stored", 1, 1)
        assert await _at(stores, scope) == [(2, "m2")]

    async def test_an_erased_key_is_dropped(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("hello"), "k1")
        await stores.archive.erase(scope)
        assert await _outcomes(stores, keyed(scope, "k1", message(1))) == ["dropped"]
        assert await texts(stores.archive, scope) == []

    async def test_a_batch_goes_to_many_conversations(self, stores: StoresUnderTest) -> None:
        scopes = [new_scope().with_conversation(f"c{n}") for n in range(10) for _ in range(3)]
        batch = [entry(scope, message(2 * n + 1), message(2 * n + 2)) for scope in scopes for n in range(3)]
        assert await _outcomes(stores, *batch) == ["stored"] * 90
        for scope in scopes:
            assert [seq for seq, _ in await _at(stores, scope)] == [1, 2, 3, 4, 5, 6]

    async def test_the_latest_entry_is_the_users_latest_activity(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        names = ["a", "b", "c", "a"]
        batch = [entry(scope.with_conversation(name), message(n + 1)) for n, name in enumerate(names)]
        await _outcomes(stores, *batch)
        page = await stores.archive.conversations(scope.whole_user, None, 10)
        assert [item.conversation for item in page] == ["a", "c", "b"]

    async def test_workers_that_store_the_same_batches_at_once_store_each_message_once(
        self, stores: StoresUnderTest
    ) -> None:
        scopes = [new_scope().with_conversation(f"c{n}") for n in range(6)]
        batches = [[entry(scope, message(n + 1)) for scope in scopes] for n in range(4)]
        work = [
            placing(stores.archive).place(list(reversed(batch)) if w else batch) for w in (0, 1) for batch in batches
        ]
        placed = [one.outcome for batch in await asyncio.gather(*work) for one in batch]
        assert (placed.count("stored"), placed.count("duplicate")) == (24, 24)
        for scope in scopes:
            assert [seq for seq, _ in await _at(stores, scope)] == [1, 2, 3, 4]

    async def test_placing_that_races_an_erasure_is_erased_or_dropped(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = (await stores.archive.messages(scope, HistoryRange())).scope
        work = [_outcomes(stores, entry(stamped, message(n))) for n in range(2, 22)]
        outcomes = await asyncio.gather(*work[:10], stores.archive.erase(scope.whole_user), *work[10:])
        assert {tuple(one) for one in outcomes if isinstance(one, list)} <= {("stored",), ("dropped",)}
        assert await texts(stores.archive, scope) == []

    async def test_an_empty_batch_is_no_work(self, stores: StoresUnderTest) -> None:
        assert await _outcomes(stores) == []

    async def test_an_unwritten_conversation_has_no_last_seq(self, stores: StoresUnderTest) -> None:
        assert await placing(stores.archive).last_seq(new_scope()) == 0

    async def test_a_gap_leaves_room_for_what_a_journal_still_holds(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        assert await placing(stores.archive).leave_gap(scope, 1_000) == 1_001
        assert (await say(stores.archive, scope, "after")).seq == 1_002
        assert await _outcomes(stores, entry(scope, message(2))) == ["stored"]
        assert await texts(stores.archive, scope) == ["one", "text 2", "after"]

    async def test_a_gap_can_be_left_in_an_unwritten_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        assert await placing(stores.archive).leave_gap(scope, 1_000) == 1_000
        stamped = (await stores.archive.messages(scope, HistoryRange())).scope
        await stores.archive.erase(scope)
        with pytest.raises(ScopeErased):
            await placing(stores.archive).leave_gap(stamped, 1_000)


async def seed_of(archive: Archive, scope: Scope, *ids: str, key: str | None = None) -> Seed:
    assert hasattr(archive, "seed")
    return await cast("ArchiveWithPlacing", archive).seed(scope, ids, key)


class SeedingCases(WithStores):
    """`seed` returns what a hot store needs to continue a conversation that only the archive has."""

    async def test_an_unknown_conversation_has_an_empty_seed(self, stores: StoresUnderTest) -> None:
        assert await seed_of(stores.archive, new_scope(), "m1", key="k1") == Seed()

    async def test_so_has_one_whose_name_makes_odd_bytes(self, stores: StoresUnderTest) -> None:
        """Its digest holds a surrogate, as UTF-8 would write one if it could."""
        names = (new_scope().with_conversation(f"c{number}") for number in count())
        scope = next(one for one in names if re.search(rb"\xed[\xa0-\xbf][\x80-\xbf]", one.digest()))
        assert await seed_of(stores.archive, scope, "m1") == Seed()

    async def test_a_seed_has_the_last_seq_and_the_language(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("xin chào", language="vi"), "two"))
        assert await seed_of(stores.archive, scope) == Seed(2, 0, "vi", START)

    async def test_a_seed_has_the_messages_that_were_queried_and_no_others(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        turn = admitted(draft("one\ud800", "m1"), draft("two", "m2", role="assistant"), draft("three", "m3"))
        await stores.archive.append(scope, turn)
        await stores.archive.append(scope.with_conversation("c2"), admitted(draft("elsewhere", "m4")))
        found = await seed_of(stores.archive, scope, "m1", "m2", "m4", "M1")
        assert dict(found.messages) == {"m1": (1, "user", "one\ud800"), "m2": (2, "assistant", "two")}

    async def test_it_knows_what_was_erased(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1"), draft("two", "m2")), "k1")
        await stores.archive.erase(scope, "m1")
        found = await seed_of(stores.archive, scope, "m1", "m2", key="k1")
        assert (found.erased, set(found.messages), found.key_erased) == ({"m1"}, {"m2"}, False)
        await stores.archive.erase(scope.whole_user)
        found = await seed_of(stores.archive, scope, "m1", "m2", "m3", key="k1")
        assert (found.last_seq, found.generation, found.active_at) == (0, 1, None)
        assert (found.erased, dict(found.messages), found.key_erased) == ({"m1", "m2"}, {}, True)
        assert found.receipt is None

    async def test_an_erased_conversation_still_has_a_seed(self, stores: StoresUnderTest) -> None:
        """For any number of message ids, and for none but the newest."""
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1")))
        await stores.archive.erase(scope.whole_user)
        assert await seed_of(stores.archive, scope) == Seed(generation=1)
        assert await seed_of(stores.archive, scope, *(f"new{n}" for n in range(40)), key="new") == Seed(generation=1)
        newest = await stores.archive.messages(scope, HistoryRange(limit=1))
        assert (newest.scope.generation, newest.messages, newest.language) == (1, (), None)

    async def test_it_knows_what_a_key_was_answered(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), refused={"thought": 1})
        receipt = await stores.archive.append(scope, turn, "k1")
        found = await seed_of(stores.archive, scope, key="k1")
        assert (found.payload, found.receipt) == (turn.digest, receipt)
        assert (await seed_of(stores.archive, scope, key="K1")).receipt is None

    async def test_a_seed_can_be_queried_for_a_great_many(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(*(draft("text", f"m{n}") for n in range(1_500))))
        found = await seed_of(stores.archive, scope, *(f"m{n}" for n in range(2_500)))
        assert len(found.messages) == 1_500

    async def test_a_seed_is_of_one_conversation(self, stores: StoresUnderTest) -> None:
        with pytest.raises(InvalidScope):
            await seed_of(stores.archive, new_scope().whole_user)
