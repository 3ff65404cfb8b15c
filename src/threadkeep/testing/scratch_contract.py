"""The contract of the `Scratch` port: subclass, and give it a fixture `scratch` that yields a `ScratchUnderTest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from threadkeep.errors import InvalidInput
from threadkeep.ports.scratch import Scratch
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.drafts import new_scope

NAME = "tool.temp.search"
TTL = 900.0
LAST_MINUTE = 60  # a server's own clock runs beside the one that is advanced here

BAD_NAMES: list[Any] = [
    "",
    "search",
    "tool.temp",
    "tool.tempx.a",
    "user.locale",
    " tool.temp.a",
    "Tool.temp.a",
    None,
    7,
]
BAD_TTLS: list[Any] = [0, -1, 1_801, float("nan"), float("inf"), "900", None, True]
VALUES: list[Any] = [0, 1.5, "", "text", [], {}, [1, [2, None]], {"a": {"b": []}}, 2**60, True, False, "😀 \0"]


@dataclass(frozen=True, slots=True)
class ScratchUnderTest:
    store: Scratch
    clock: FakeClock


class ScratchContract:
    @pytest.mark.parametrize("value", VALUES, ids=repr)
    async def test_a_value_comes_back_as_it_was_put(self, scratch: ScratchUnderTest, value: Any) -> None:
        scope = new_scope()
        await scratch.store.put(scope, NAME, value, TTL)
        assert await scratch.store.get(scope, NAME) == value

    @pytest.mark.parametrize("name", ["tool.temp.x", "retrieval.cache.x", "features.x", "tool.temp.{x}:%_é"])
    async def test_every_namespace_of_scratch_is_open(self, scratch: ScratchUnderTest, name: str) -> None:
        scope = new_scope()
        await scratch.store.put(scope, name, "value", TTL)
        assert await scratch.store.get(scope, name) == "value"

    async def test_a_value_expires(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        await scratch.store.put(scope, NAME, "value", TTL)
        scratch.clock.advance(TTL - LAST_MINUTE)
        assert await scratch.store.get(scope, NAME) == "value"
        scratch.clock.advance(LAST_MINUTE)
        assert await scratch.store.get(scope, NAME) is None
        assert await scratch.store.delete(scope, NAME) is False
        assert await scratch.store.erase(scope) == 0

    async def test_putting_again_replaces_the_value_and_its_time(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        await scratch.store.put(scope, NAME, "old", TTL)
        scratch.clock.advance(TTL - LAST_MINUTE)
        await scratch.store.put(scope, NAME, "new", TTL)
        scratch.clock.advance(TTL - LAST_MINUTE)
        assert await scratch.store.get(scope, NAME) == "new"

    async def test_a_deleted_value_is_not_returned(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        await scratch.store.put(scope, NAME, "value", TTL)
        assert await scratch.store.delete(scope, NAME) is True
        assert await scratch.store.delete(scope, NAME) is False
        assert await scratch.store.get(scope, NAME) is None

    async def test_scopes_do_not_see_each_others_values(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        places = [scope, scope.with_conversation("C1"), scope.with_conversation("c1 "), scope.whole_user, new_scope()]
        for number, place in enumerate(places):
            await scratch.store.put(place, NAME, number, TTL)
        assert [await scratch.store.get(place, NAME) for place in places] == [0, 1, 2, 3, 4]

    async def test_a_generation_does_not_make_another_scope(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        await scratch.store.put(scope.at(3), NAME, "value", TTL)
        assert await scratch.store.get(scope, NAME) == "value"

    async def test_erasing_a_conversation_forgets_its_values_only(self, scratch: ScratchUnderTest) -> None:
        scope = new_scope()
        other = scope.with_conversation("c2")
        for place in (scope, other, scope.whole_user):
            await scratch.store.put(place, NAME, "value", TTL)
        await scratch.store.put(scope, "features.x", "value", TTL)
        assert await scratch.store.erase(scope.at(7)) == 2
        assert await scratch.store.get(scope, NAME) is None
        assert await scratch.store.get(other, NAME) == "value"

    async def test_erasing_a_user_forgets_all_their_values(self, scratch: ScratchUnderTest) -> None:
        scope, neighbour = new_scope(), new_scope()
        for place in (scope, scope.with_conversation("c2"), scope.whole_user, neighbour):
            await scratch.store.put(place, NAME, "value", TTL)
        assert await scratch.store.erase(scope.whole_user) == 3
        assert await scratch.store.get(scope, NAME) is None
        assert await scratch.store.get(neighbour, NAME) == "value"

    @pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
    async def test_a_name_outside_scratch_is_refused(self, scratch: ScratchUnderTest, name: Any) -> None:
        with pytest.raises(InvalidInput):
            await scratch.store.put(new_scope(), name, "value", TTL)

    @pytest.mark.parametrize("ttl", BAD_TTLS, ids=repr)
    async def test_a_time_out_of_range_is_refused(self, scratch: ScratchUnderTest, ttl: Any) -> None:
        with pytest.raises(InvalidInput):
            await scratch.store.put(new_scope(), NAME, "value", ttl)
