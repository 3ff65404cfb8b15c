"""Rows that an application wrote itself: read as what they are, and nothing breaks on them."""

from __future__ import annotations

import json

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import ask, rows, time_type, turns_table
from threadkeep.compat.reflection import MemoryModule
from threadkeep.models.tokens import Tokenizer

LATE = {"summary": "met", "causes": []}
ODD = ['{"user":[1]}', "[]", '{"user":[-1],"assistant":[99999999]}', '{"user":"text","encoding":7}', '"text"', "null"]


@pytest.fixture(params=["json", "text"])
def others(request: pytest.FixtureRequest, make_module: MakeModule, empty_url: str) -> MemoryModule:
    """Its table takes rows with nothing but ids."""
    loose: dict[str, str | None] = {"created_at": time_type(empty_url) + " NULL"}
    if request.param == "text":
        loose |= {"token_data": "text", "reflection": "text"}
    ask(empty_url, turns_table(empty_url, "conversations", **loose))
    return make_module(empty_url, tables={"memories": None})


def add(url: str, at: str | None, **values: str) -> None:
    named = {"conversation_id": "c1", "user_id": "u1"} | values | ({} if at is None else {"created_at": at})
    quoted = ", ".join(f"'{value}'" for value in named.values())
    ask(url, f"INSERT INTO conversations ({', '.join(named)}) VALUES ({quoted})")


def test_rows_without_our_tokens_are_read_with_no_text(others: MemoryModule, empty_url: str) -> None:
    add(empty_url, "2026-01-31 12:00:00", user_message="their own words")
    for number, tokens in enumerate(ODD):
        add(empty_url, f"2026-01-31 12:00:0{number + 1}", token_data=tokens, cid="not a cid")
    others.store_conversation("c1", "u1", "ours", "ok", None)
    others.flush_once()
    found = others.load_long_term("c1")
    assert [turn["assistant_message"] for turn in found] == [None] * (len(ODD) + 1) + ["ok"]
    assert found[0] == {
        "conversation_id": "c1",
        "user_id": "u1",
        "user_message": None,
        "assistant_message": None,
        "reflection": None,
        "token_data": {"user": [], "assistant": [], "reflection": []},
        "cid": None,
        "created_at": "2026-01-31T12:00:00+00:00",
    }


def test_a_row_of_an_earlier_version_is_read_by_the_encoding_it_names(others: MemoryModule, empty_url: str) -> None:
    tokens = {"user": Tokenizer("o200k_base").encode("hi"), "assistant": [], "reflection": [], "encoding": "o200k_base"}
    add(empty_url, "2026-01-31 12:00:00", token_data=json.dumps(tokens))
    (found,) = others.load_long_term("c1")
    assert (found["user_message"], set(found["token_data"])) == ("hi", {"user", "assistant", "reflection"})


def test_a_reflection_that_is_not_of_our_shape_is_none(others: MemoryModule, empty_url: str) -> None:
    for number, reflection in enumerate(('"text"', "[1]", "{}", '{"summary": 3, "causes": "x"}')):
        add(empty_url, f"2026-01-31 12:00:0{number}", reflection=reflection)
    assert [turn["reflection"] for turn in others.load_long_term("c1")] == [None] * 4


def test_rows_without_a_time_are_left_out_and_take_no_place(others: MemoryModule, empty_url: str) -> None:
    for _ in range(3):
        add(empty_url, None)
    others.store_conversation("c1", "u1", "ours", "ok", None)
    others.flush_once()
    assert [turn["user_message"] for turn in others.load_long_term("c1", limit=2)] == ["ours"]


def test_a_late_reflection_changes_no_row_that_is_not_ours(others: MemoryModule, empty_url: str) -> None:
    add(empty_url, "2026-01-31 12:00:00", user_message="their own words")
    others.store_reflection("c1", "u1", LATE)
    others.flush_once()
    assert rows(empty_url, columns="user_message, reflection, token_data") == [("their own words", None, None)]


def test_a_time_of_text_that_is_none_is_left_out(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", created_at="varchar(40)"))
    module = make_module(empty_url, tables={"memories": None})
    add(empty_url, "yesterday", token_data='{"user":[1]}')
    module.persist_long_term([{"conversation_id": "c1", "user_id": "u1", "user_message": "ours"}])
    assert [turn["user_message"] for turn in module.load_long_term("c1")] == ["ours"]
