"""No scope reads, changes or erases the messages of another, however alike the ids look."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from threadkeep.model import ConversationChange
from threadkeep.scope import Scope
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
