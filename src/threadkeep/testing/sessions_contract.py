"""The contract of the `Sessions` port: subclass, and give it `open_stores` (see `threadkeep.testing.stores`).

Messages reach a session by an append to the archive, as in `Memory`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from threadkeep.errors import InvalidScope, MemoryClosed
from threadkeep.model import Session
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.testing.archive_appends import TEXTS
from threadkeep.testing.archive_contract import LOOK_ALIKES
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import a_tenant, new_scope, say
from threadkeep.testing.stores import OpenStores, StoresUnderTest, WithStores

TTL = SessionLimits().ttl_seconds
LAST_MINUTE = 60  # a server's own clock runs beside the one that is advanced here


async def talk(stores: StoresUnderTest, scope: Scope, *texts: str) -> None:
    await say(stores.archive, scope, *texts)


async def live(stores: StoresUnderTest, scope: Scope) -> Session:
    session = await stores.sessions.read(scope)
    assert session is not None
    return session


async def window(stores: StoresUnderTest, scope: Scope) -> list[str]:
    return [message.content for message in (await live(stores, scope)).messages]


class SessionsContract(WithStores):
    async def test_there_is_no_session_before_the_first_word(self, stores: StoresUnderTest) -> None:
        assert await stores.sessions.read(new_scope()) is None

    async def test_touching_opens_an_empty_session(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        session = await stores.sessions.touch(scope)
        assert session.scope.same_key(scope)
        assert (session.created_at, session.messages, session.language) == (START, (), None)
        assert await live(stores, scope) == session

    async def test_the_window_holds_the_messages_in_order(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await talk(stores, scope, "one", "two")
        await talk(stores, scope, "three")
        session = await live(stores, scope)
        assert [(m.seq, m.content) for m in session.messages] == [(1, "one"), (2, "two"), (3, "three")]

    async def test_the_window_keeps_the_newest_messages(self, open_stores: OpenStores) -> None:
        async with open_stores(SessionLimits(max_messages=3)) as stores:
            scope = new_scope()
            for number in range(10):
                await talk(stores, scope, f"text {number}")
            assert await window(stores, scope) == ["text 7", "text 8", "text 9"]

    async def test_one_append_longer_than_the_window_leaves_its_end(self, open_stores: OpenStores) -> None:
        async with open_stores(SessionLimits(max_messages=3)) as stores:
            scope = new_scope()
            await talk(stores, scope, *(f"text {number}" for number in range(10)))
            assert await window(stores, scope) == ["text 7", "text 8", "text 9"]

    async def test_the_window_keeps_to_its_characters(self, open_stores: OpenStores) -> None:
        async with open_stores(SessionLimits(max_chars=30)) as stores:
            scope = new_scope()
            await talk(stores, scope, "a" * 25, "ł" * 10, "😀" * 10, "d" * 10)
            assert await window(stores, scope) == ["ł" * 10, "😀" * 10, "d" * 10]
            await talk(stores, scope, "e" * 11)
            assert await window(stores, scope) == ["d" * 10, "e" * 11]

    async def test_the_newest_message_stays_however_long_it_is(self, open_stores: OpenStores) -> None:
        async with open_stores(SessionLimits(max_chars=10)) as stores:
            scope = new_scope()
            await talk(stores, scope, "short", "x" * 1_000)
            assert await window(stores, scope) == ["x" * 1_000]

    async def test_tasks_that_append_at_once_leave_one_ordered_window(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await asyncio.gather(*(talk(stores, scope, f"text {number}") for number in range(15)))
        session = await live(stores, scope)
        assert [message.seq for message in session.messages] == list(range(1, 16))

    async def test_a_session_ends_when_its_time_has_passed(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await talk(stores, scope, "hello")
        stores.clock.advance(TTL - LAST_MINUTE)
        assert await window(stores, scope) == ["hello"]
        stores.clock.advance(LAST_MINUTE)
        assert await stores.sessions.read(scope) is None

    @pytest.mark.parametrize("slide", ["touch", "talk", "set_language"])
    async def test_a_sign_of_life_slides_the_time(self, stores: StoresUnderTest, slide: str) -> None:
        scope = new_scope()
        await talk(stores, scope, "hello")
        created = (await live(stores, scope)).created_at
        for _ in range(3):
            stores.clock.advance(TTL - LAST_MINUTE)
            if slide == "touch":
                await stores.sessions.touch(scope)
            elif slide == "talk":
                await talk(stores, scope, "more")
            else:
                await stores.sessions.set_language(scope, "vi")
        assert (await live(stores, scope)).created_at == created

    async def test_reading_does_not_slide_the_time(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.sessions.touch(scope)
        stores.clock.advance(TTL - LAST_MINUTE)
        await live(stores, scope)
        stores.clock.advance(LAST_MINUTE)
        assert await stores.sessions.read(scope) is None

    async def test_a_session_opened_after_its_end_is_a_new_one(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.sessions.touch(scope)
        later = stores.clock.advance(TTL + 1)
        assert (await stores.sessions.touch(scope)).created_at == later

    async def test_the_language_is_kept_and_changed(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.sessions.set_language(scope, "vi")
        await talk(stores, scope, "hello")
        assert (await live(stores, scope)).language == "vi"
        await stores.sessions.set_language(scope, "zh-Hant")
        assert (await stores.sessions.touch(scope)).language == "zh-Hant"

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_text_comes_back_exactly(self, stores: StoresUnderTest, text: str) -> None:
        scope = new_scope()
        await talk(stores, scope, text)
        assert await window(stores, scope) == [text]

    @pytest.mark.parametrize("part", ["tenant", "user", "conversation"])
    @pytest.mark.parametrize(("one", "other"), LOOK_ALIKES)
    async def test_ids_that_look_alike_are_two_sessions(
        self, stores: StoresUnderTest, part: str, one: str, other: str
    ) -> None:
        common = new_scope(a_tenant())
        mine, theirs = replace(common, **{part: one}), replace(common, **{part: other})
        await talk(stores, mine, "mine")
        await talk(stores, theirs, "theirs")
        await stores.sessions.set_language(mine, "vi")
        assert (await window(stores, mine), await window(stores, theirs)) == (["mine"], ["theirs"])
        assert (await live(stores, theirs)).language is None
        await stores.sessions.erase(mine)
        assert await stores.sessions.read(mine) is None
        assert await window(stores, theirs) == ["theirs"]

    async def test_erasing_ends_one_session(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("c1", "c2"):
            await talk(stores, scope.with_conversation(name), "hello")
        erased = await stores.sessions.erase(scope)
        assert (erased.found, erased.removed, erased.failed) == (1, 1, 0)
        assert await stores.sessions.read(scope) is None
        assert await window(stores, scope.with_conversation("c2")) == ["hello"]

    async def test_erasing_a_user_ends_all_their_sessions(self, stores: StoresUnderTest) -> None:
        scope, neighbour = new_scope(), new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(4)]
        for place in (*places, neighbour):
            await talk(stores, place, "hello")
        erased = await stores.sessions.erase(scope.whole_user)
        assert (erased.found, erased.removed) == (4, 4)
        assert [await stores.sessions.read(place) for place in places] == [None] * 4
        assert await window(stores, neighbour) == ["hello"]

    async def test_erasing_twice_finds_nothing_the_second_time(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await talk(stores, scope, "hello")
        await stores.sessions.erase(scope)
        assert (await stores.sessions.erase(scope)).found == 0
        assert (await stores.sessions.erase(scope.whole_user)).found == 0

    async def test_a_session_belongs_to_one_conversation(self, stores: StoresUnderTest) -> None:
        user = new_scope().whole_user
        with pytest.raises(InvalidScope):
            await stores.sessions.touch(user)
        with pytest.raises(InvalidScope):
            await stores.sessions.read(user)
        with pytest.raises(InvalidScope):
            await stores.sessions.set_language(user, "vi")

    async def test_sessions_close_twice_and_then_say_so(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.sessions.touch(scope)
        await asyncio.gather(stores.sessions.close(), stores.sessions.close())
        await stores.sessions.close()
        with pytest.raises(MemoryClosed):
            await stores.sessions.read(scope)
        with pytest.raises(MemoryClosed):
            await stores.sessions.touch(scope)
        with pytest.raises(MemoryClosed):
            await stores.sessions.set_language(scope, "vi")
        with pytest.raises(MemoryClosed):
            await stores.sessions.erase(scope)
