"""A scope is an address: checked when it is made, never ambiguous, never mixed up with another."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep import Scope
from threadkeep.errors import InvalidScope
from threadkeep.scope import MAX_PART_LENGTH, length_prefixed

BAD_PARTS: list[Any] = ["", "a\0b", "a\nb", "\x7f", "\x85", "\ud800", "x" * 256, None, 7, True, b"bytes", ["a"]]
ODD_PARTS = ["x" * MAX_PART_LENGTH, " ", "tt ", "{x}", "a:b/c%_*?[", "résumé", "花生", "😀", "..", "NULL", "a\u202eb"]


@pytest.mark.parametrize("value", BAD_PARTS, ids=repr)
@pytest.mark.parametrize("field", ["tenant", "user", "conversation"])
def test_a_part_that_no_store_could_keep_is_refused_by_name(field: str, value: Any) -> None:
    if field == "conversation" and value is None:
        return
    parts: dict[str, Any] = {"tenant": "t", "user": "u", "conversation": "c", field: value}
    with pytest.raises(InvalidScope) as caught:
        Scope(**parts)
    assert caught.value.field == field


@pytest.mark.parametrize("value", ODD_PARTS, ids=repr)
def test_any_printable_part_is_welcome(value: str) -> None:
    scope = Scope(value, value, value)
    assert (scope.tenant, scope.user, scope.conversation) == (value, value, value)


@pytest.mark.parametrize("generation", [-1, 1.0, True, "1", float("nan")], ids=repr)
def test_a_generation_is_a_whole_number(generation: Any) -> None:
    with pytest.raises(InvalidScope):
        Scope(user="u", generation=generation)


def test_a_user_must_be_named() -> None:
    with pytest.raises(InvalidScope):
        Scope()


def test_another_conversation_or_the_whole_user_carries_no_generation() -> None:
    stamped = Scope("t", "u", "c", generation=4)
    assert stamped.with_conversation("d") == Scope("t", "u", "d")
    assert stamped.whole_user == Scope("t", "u")
    assert stamped.same_key(Scope("t", "u", "c"))
    assert not stamped.same_key(Scope("t", "u", "C"))


def test_the_digest_stands_for_the_place_and_not_for_its_generation() -> None:
    assert Scope("t", "u", "c", 3).digest("key", "k") == Scope("t", "u", "c").digest("key", "k")


def test_a_string_enum_addresses_the_same_place_as_its_value() -> None:
    class Tenant(StrEnum):
        SHOP = "shop"

    assert Scope(Tenant.SHOP, "u", "c").digest() == Scope("shop", "u", "c").digest()


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_no_two_lists_of_strings_share_their_bytes(one: list[str], other: list[str]) -> None:
    assert (length_prefixed(tuple(one)) == length_prefixed(tuple(other))) == (one == other)


def test_moving_a_character_between_the_parts_changes_the_digest() -> None:
    places = [Scope("ab", "c", "d"), Scope("a", "bc", "d"), Scope("a", "b", "cd"), Scope("ab", "cd"), Scope("a", "bcd")]
    assert len({place.digest() for place in places}) == len(places)
