"""Text that a server cannot hold comes back exactly; words are a user's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mysql, postgresql

from threadkeep.db.tables import AnyText, Exact
from threadkeep.db.terms import hashed, packed, unpacked
from threadkeep.scope import Scope

DIALECTS = [postgresql.dialect(), mysql.dialect()]  # type: ignore[no-untyped-call]
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(text=any_text | any_text.map(lambda text: "\x01tk64:" + text))
def test_any_text_is_stored_as_what_a_server_takes_and_read_back_as_it_was(dialect, text: str) -> None:
    stored = AnyText().process_bind_param(text, dialect)
    assert stored is not None
    assert "\0" not in stored
    stored.encode("utf-8")  # no lone surrogate is left in it
    assert AnyText().process_result_value(stored, dialect) == text


def test_ordinary_text_stays_readable_in_the_table() -> None:
    for text in ("Zażółć gęślą jaźń", "花生 🥜", "", "\x01 alone", "tk64:"):
        assert AnyText().process_bind_param(text, DIALECTS[0]) == text


def test_an_id_is_bytes_where_text_would_be_compared_by_collation() -> None:
    assert Exact().process_bind_param("Bób", DIALECTS[0]) == "Bób"
    assert Exact().process_bind_param("Bób", DIALECTS[1]) == "Bób".encode()
    assert Exact().process_result_value("Bób".encode(), DIALECTS[1]) == "Bób"


SCOPES = [Scope("shop", "ann"), Scope("shop", "Ann"), Scope("Shop", "ann"), Scope("hotel", "bob")]


def test_the_same_term_of_two_users_is_two_words() -> None:
    assert len({hashed(scope, ["peanuts"])[0] for scope in SCOPES}) == len(SCOPES)


def test_a_users_words_are_the_same_in_every_conversation_and_generation() -> None:
    scope = Scope("shop", "ann", "c1", generation=3)
    assert hashed(scope, ["a", "b"]) == hashed(Scope("shop", "ann"), ["a", "b"])


def test_a_repeated_term_is_a_repeated_word_and_survives_packing() -> None:
    words = hashed(SCOPES[0], ["a", "b", "a"])
    assert words[0] == words[2] != words[1]
    assert unpacked(packed(words)) == words


def test_a_users_words_lie_side_by_side() -> None:
    found = sorted((word, scope.user) for scope in SCOPES for word in hashed(scope, map(str, range(100))))
    changes = sum(one[1] != other[1] for one, other in pairwise(found))
    assert changes <= len(SCOPES) - 1


@given(st.lists(any_text, max_size=20))
def test_a_word_fits_a_signed_64_bit_column(terms: list[str]) -> None:
    assert all(-(2**63) <= word < 2**63 for word in hashed(SCOPES[0], terms))
