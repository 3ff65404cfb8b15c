"""Window, journal and language belong to one scope, however alike the ids look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.testing.archive_cases.isolation import LOOK_ALIKES
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, WithHot

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
