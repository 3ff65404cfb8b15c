"""An erase empties the window, the pending list and the journal, and no late retry restores a message."""

from __future__ import annotations

import asyncio

import pytest

from threadkeep.errors import ScopeErased
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, OpenHot, WithHot


class HotErasureCases(WithHot):
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
