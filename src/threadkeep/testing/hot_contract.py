"""The contract of the `HotStore` port and of the `Journal` behind it: subclass, and give it a fixture `open_hot`.

    @pytest.fixture
    def open_hot(server):
        @asynccontextmanager
        async def open_(limits=SessionLimits(), stale_seconds=60):
            archive = ArchiveAsked()
            ...
            yield HotUnderTest(hot, journal, archive)
        return open_

Tests keep to scopes of their own, but a journal is one for all: give each test run a journal of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from threadkeep.errors import ScopeErased
from threadkeep.model import Message
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.testing.archive_appends import TEXTS
from threadkeep.testing.archive_contract import LOOK_ALIKES
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_appends import HotOrderCases, HotRetryCases, HotSeedingCases
from threadkeep.testing.stores import HotUnderTest, OpenHot, WithHot

APPENDS = st.lists(st.lists(st.integers(0, 12), min_size=0, max_size=7), max_size=12)


def trimmed(texts: list[str], limits: SessionLimits) -> list[str]:
    """The model: the longest end of the conversation within both limits, and the newest message always."""
    kept: list[str] = []
    for text in reversed(texts[-limits.max_messages :]):
        if kept and limits.max_chars is not None and sum(map(len, kept)) + len(text) > limits.max_chars:
            break
        kept.insert(0, text)
    return kept


class HotWindowCases(WithHot):
    """The window: trimmed from the oldest, exactly; what left it and is not settled stays pending."""

    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(appends=APPENDS, most=st.integers(1, 5), chars=st.none() | st.integers(1, 25))
    def test_it_is_trimmed_as_the_model_says(
        self, open_hot: OpenHot, appends: list[list[int]], most: int, chars: int | None
    ) -> None:
        limits = SessionLimits(max_messages=most, max_chars=chars)

        async def scenario() -> None:
            async with open_hot(limits) as store:
                scope, said = new_scope(), list[str]()
                for lengths in appends:
                    texts = ["ł" * length + "." for length in lengths]
                    await store.say(scope, *texts)
                    said += texts
                    if said:
                        assert await store.window(scope) == trimmed(said, limits)
                        assert [text for _, text in await store.everything(scope)] == said
                        assert (await store.now(scope)).whole

        asyncio.run(scenario())

    async def test_what_left_the_window_is_pending_until_it_is_settled(self, open_hot: OpenHot) -> None:
        async with open_hot(SessionLimits(max_messages=3)) as store:
            scope = new_scope()
            for number in range(10):
                await store.say(scope, f"text {number}")
            found = await store.now(scope)
            assert [message.seq for message in found.pending] == [1, 2, 3, 4, 5, 6, 7]
            entries = await store.entries_of(scope)
            await store.journal.settle([entries[1], entries[4], entries[9]])
            assert [message.seq for message in (await store.now(scope)).pending] == [1, 3, 4, 6, 7]
            await store.journal.settle(entries)
            assert (await store.now(scope)).pending == ()
            assert await store.window(scope) == ["text 7", "text 8", "text 9"]

    async def test_only_so_much_of_pending_as_was_requested(self, open_hot: OpenHot) -> None:
        async with open_hot(SessionLimits(max_messages=2)) as store:
            scope = new_scope()
            await store.say(scope, *(f"text {number}" for number in range(8)))
            for wanted, seqs in ((0, []), (2, [5, 6]), (100, [1, 2, 3, 4, 5, 6])):
                found = await store.hot.read(scope, pending=wanted)
                assert found is not None
                assert [message.seq for message in found.pending] == seqs

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_text_comes_back_exactly_from_window_pending_and_journal(self, open_hot: OpenHot, text: str) -> None:
        async with open_hot(SessionLimits(max_messages=1)) as store:
            scope = new_scope()
            await store.say(scope, text, text)
            found = await store.now(scope)
            assert [message.content for message in (*found.pending, *found.window)] == [text, text]
            (entry,) = await store.entries_of(scope)
            assert [message.content for message in entry.messages] == [text, text]

    async def test_the_language_of_the_first_message_that_names_one_is_the_conversations(
        self, store: HotUnderTest
    ) -> None:
        scope = new_scope()
        await store.say(scope, "hm")
        assert (await store.now(scope)).language is None
        await store.hot.append(scope, admitted(draft("xin chào", language="vi"), draft("hi", language="en")))
        await store.hot.append(scope, admitted(draft("hi", language="en")))
        assert (await store.now(scope)).language == "vi"
        await store.hot.set_language(scope, "zh-Hant")
        await store.say(scope, "more")
        assert (await store.now(scope)).language == "zh-Hant"

    async def test_messages_that_the_archive_placed_enter_at_their_number(self, store: HotUnderTest) -> None:
        scope = new_scope()
        placed = [Message(seq, f"m{seq}", "user", f"text {seq}", START) for seq in range(1, 6)]
        await store.hot.refresh(scope, placed[:2])
        await store.hot.refresh(scope, placed[4:])
        assert not (await store.now(scope)).whole
        await store.hot.refresh(scope, placed[2:4])
        await store.hot.refresh(scope, placed)
        assert await store.everything(scope) == [(seq, f"text {seq}") for seq in range(1, 6)]
        assert await store.entries_of(scope) == []


class JournalCases(WithHot):
    """Every queued append is handed out at least once, and until it is settled it is never lost."""

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


# Pairs that a key built by joining would mix up.
TANGLES = [
    (Scope("a:b", "c", "d"), Scope("a", "b:c", "d")),
    (Scope("a", "b:c", "d"), Scope("a", "b", "c:d")),
    (Scope("a%3Ab", "c", "d"), Scope("a:b", "c", "d")),
    (Scope(DEFAULT_TENANT, "default", "@shop:bob:c1"), Scope("shop", "bob", "c1")),
    (Scope(DEFAULT_TENANT, "default", "x:latest"), Scope(DEFAULT_TENANT, "default", "x")),
    (Scope("t", "{p01}", "c"), Scope("t", "p01", "c")),
    (Scope("t", "u", "{p01}:c"), Scope("t", "u", "c")),
    (Scope("t", "u", "{"), Scope("t", "u", "}")),
    (Scope("t", "u", "x" * 200), Scope("t", "u", "x" * 199)),
    (Scope("t", "u", "*"), Scope("t", "u", "?")),
]


class HotIsolationCases(WithHot):
    """Window, journal and language belong to one scope, however alike the ids look."""

    async def _stay_apart(self, store: HotUnderTest, mine: Scope, theirs: Scope) -> None:
        for place in (mine, theirs):
            await store.hot.erase(place)  # fixed ids: an earlier run may have used them
        await store.say(mine, "mine")
        await store.say(theirs, "theirs", "too")
        await store.hot.set_language(mine, "vi")
        assert (await store.window(mine), await store.window(theirs)) == (["mine"], ["theirs", "too"])
        assert (await store.now(theirs)).language is None
        await store.hot.erase(mine)
        assert await store.hot.read(mine) is None
        assert await store.window(theirs) == ["theirs", "too"]
        entries = [e for e in await store.journal.claim("reader", 1_000) if e.scope.same_key(theirs)]
        assert [[message.content for message in entry.messages] for entry in entries] == [["theirs", "too"]]
        await store.journal.settle(entries)

    @pytest.mark.parametrize("part", ["tenant", "user", "conversation"])
    @pytest.mark.parametrize(("one", "other"), LOOK_ALIKES)
    async def test_ids_that_look_alike_are_two_scopes(
        self, store: HotUnderTest, part: str, one: str, other: str
    ) -> None:
        common = new_scope()
        await self._stay_apart(store, replace(common, **{part: one}), replace(common, **{part: other}))

    @pytest.mark.parametrize(("one", "other"), TANGLES)
    async def test_ids_that_hold_separators_are_two_scopes(self, store: HotUnderTest, one: Scope, other: Scope) -> None:
        await self._stay_apart(store, one, other)


class HotErasureCases(WithHot):
    """An erase empties the window, the pending list and the journal, and no late retry restores a message."""

    async def test_a_conversation_is_deleted_with_its_journal(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, *(f"text {number}" for number in range(30)))
        await store.say(scope.with_conversation("c2"), "stays")
        erased = await store.hot.erase(scope)
        assert (erased["sessions"].removed, erased["journal"].removed) == (1, 30)
        assert await store.hot.read(scope) is None
        assert [entry.scope.conversation for entry in await store.entries_of(scope)] == ["c2"]
        assert (await store.hot.erase(scope))["sessions"].found == 0

    async def test_a_user_is_deleted_with_all_conversations(self, store: HotUnderTest) -> None:
        scope, neighbour = new_scope(), new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(12)]
        for place in (*places, neighbour):
            await store.say(place, "hello", "there")
        erased = await store.hot.erase(scope.whole_user)
        assert (erased["sessions"].removed, erased["journal"].removed) == (12, 24)
        assert [await store.hot.read(place) for place in places] == [None] * 12
        assert await store.window(neighbour) == ["hello", "there"]
        assert await store.entries_of(scope) == []

    @pytest.mark.parametrize("whole_user", [False, True])
    async def test_work_begun_before_an_erase_is_refused_after_it(self, store: HotUnderTest, whole_user: bool) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        before = (await store.now(scope)).scope
        await store.hot.erase(scope.whole_user if whole_user else scope)
        for late in (
            store.say(before, "late"),
            store.hot.touch(before),
            store.hot.set_language(before, "vi"),
            store.hot.refresh(before, ()),
        ):
            with pytest.raises(ScopeErased):
                await late
        assert await store.hot.read(scope) is None

    async def test_so_it_is_where_the_archive_erased_it_unknown_to_the_hot_store(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        before = (await store.now(scope)).scope
        await store.hot.erase(scope, generation=0)
        store.archive.knows(scope, 0, generation=1)
        with pytest.raises(ScopeErased):
            await store.say(before, "late")
        assert await store.hot.read(scope) is None
        assert await store.entries_of(scope) == []

    async def test_the_generation_is_the_archives_when_it_is_given(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, "one")
        await store.hot.erase(scope, generation=7)
        store.archive.knows(scope, 0, generation=7)
        assert (await store.say(scope, "two")).seq == 1
        assert (await store.now(scope)).scope.generation == 7

    async def test_a_key_used_before_an_erase_stores_nothing_after_it(self, store: HotUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"))
        await store.hot.append(scope, turn, "k")
        await store.hot.erase(scope)
        with pytest.raises(ScopeErased):
            await store.hot.append(scope, turn, "k")
        assert await store.hot.read(scope) is None

    async def test_a_settle_from_before_an_erase_touches_nothing_new(self, open_hot: OpenHot) -> None:
        async with open_hot() as store:
            scope = new_scope()
            await store.say(scope, "old", "old too")
            entries = await store.entries_of(scope)
            await store.hot.erase(scope)
            await store.say(scope, "new", "new too")
            await store.journal.settle(entries)
            fresh = await store.entries_of(scope)
            assert [message.content for entry in fresh for message in entry.messages] == ["new", "new too"]
            await store.say(scope, *("more" for _ in range(30)))
            assert (await store.everything(scope))[:2] == [(1, "new"), (2, "new too")]

    async def test_one_message_is_deleted_and_the_rest_of_its_turn_stays(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted(draft("one", "m1"), draft("two", "m2"), draft("three", "m3")))
        await store.say(scope, *(f"text {number}" for number in range(30)))
        erased = await store.hot.erase(scope, "m2")
        assert (erased["sessions"].removed, erased["journal"].removed) == (0, 1)
        assert [seq for seq, _ in await store.everything(scope)] == [1, *range(3, 34)]
        entries = await store.entries_of(scope)
        assert sorted(m.seq for entry in entries for m in entry.messages) == [1, *range(3, 34)]
        await store.journal.settle(entries)
        assert (await store.now(scope)).pending == ()

    async def test_an_erased_message_is_not_kept_again(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.hot.append(scope, admitted(draft("one", "m1")))
        await store.hot.erase(scope, "m1")
        again = await store.hot.append(scope, admitted(draft("one", "m1"), draft("two", "m2")))
        assert (again.kept, again.refused) == (("m2",), {"erased": 1})
        assert [text for _, text in await store.everything(scope)] == ["two"]

    async def test_appends_that_race_an_erase_are_wholly_there_or_wholly_deleted(self, store: HotUnderTest) -> None:
        scope = new_scope()
        for _ in range(5):
            await store.say(scope, "before")
            appends = [store.say(scope, f"a{number}", f"b{number}") for number in range(10)]
            await asyncio.gather(*appends[:5], store.hot.erase(scope), *appends[5:])
            found = await store.hot.read(scope)
            hot = [] if found is None else [message.content for message in (*found.pending, *found.window)]
            entries = [message.content for e in await store.entries_of(scope) for message in e.messages]
            assert "before" not in hot
            assert sorted(hot) == sorted(entries)
            assert sorted(text[1:] for text in hot if text[0] == "a") == sorted(t[1:] for t in hot if t[0] == "b")
            await store.hot.erase(scope)


class HotContract(
    HotOrderCases,
    HotRetryCases,
    HotWindowCases,
    HotIsolationCases,
    HotSeedingCases,
    HotErasureCases,
    JournalCases,
):
    """See above for the fixture."""
