"""The I/O contract: one structure out, whatever comes in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from threadkeep.archive.mapped.rows import canonical, cid_of
from threadkeep.compat.reflection import pack_token_record, tokenize_text, validate_and_normalize
from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.models.tokens import decode

IDS = {"conversation_id": "c1", "user_id": "u1"}


def test_the_output_has_exactly_the_fields_that_storage_and_front_end_share() -> None:
    found = validate_and_normalize(IDS | {"user_message": "hi", "elsewhere": 1})
    assert list(found) == [
        "conversation_id",
        "user_id",
        "user_message",
        "assistant_message",
        "reflection",
        "token_data",
        "cid",
        "created_at",
    ]


def test_all_but_the_ids_may_be_none() -> None:
    found = validate_and_normalize(IDS | dict.fromkeys(["user_message", "reflection", "token_data", "created_at"]))
    assert (found["user_message"], found["assistant_message"], found["reflection"], found["cid"]) == (None,) * 4
    assert found["token_data"] == {"user": [], "assistant": [], "reflection": []}


@pytest.mark.parametrize("name", ["conversation_id", "user_id"])
def test_a_payload_without_its_ids_is_invalid_and_the_field_is_named(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_and_normalize({key: value for key, value in IDS.items() if key != name})
    assert caught.value.field == name


def test_everything_is_redacted_and_the_tokens_are_of_the_redacted_text() -> None:
    told = {"summary": "mail ann@example.org", "causes": ["mail bob@example.org"], "trace": "carl@example.org"}
    found = validate_and_normalize(IDS | {"user_message": "I am dan@example.org", "reflection": told})
    assert "@example.org" not in str(found)
    assert found["reflection"] == {"summary": "mail [REDACTED:EMAIL]", "causes": ["mail [REDACTED:EMAIL]"]}
    assert decode(found["token_data"]["user"]) == found["user_message"] == "I am [REDACTED:EMAIL]"
    assert "[REDACTED:EMAIL]" in decode(found["token_data"]["reflection"])


def test_tokens_without_their_text_are_kept_and_redacted_like_any_text() -> None:
    tokens = pack_token_record("問題", "write to ann@example.org", {"summary": "ok", "causes": []})
    found = validate_and_normalize(IDS | {"token_data": tokens})
    assert found["token_data"]["user"] == tokens["user"]
    assert decode(found["token_data"]["assistant"]) == "write to [REDACTED:EMAIL]"
    assert found["reflection"] == {"summary": "ok", "causes": []}


def test_normalising_what_was_normalised_changes_nothing() -> None:
    once = validate_and_normalize(IDS | {"user_message": "mail ann@example.org", "reflection": {"summary": "met"}})
    assert validate_and_normalize(once) == once


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T20:00:00.5+08:00", "2026-01-31T12:00:00.500000+00:00"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00+00:00"),
    ],
)
def test_created_at_is_iso_8601_in_utc(given: Any, expected: str) -> None:
    assert validate_and_normalize(IDS | {"created_at": given})["created_at"] == expected


def test_times_that_were_not_given_rise() -> None:
    times = [datetime.fromisoformat(validate_and_normalize(IDS)["created_at"]) for _ in range(1_000)]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"user_message": 7}, "user_message"),
        ({"assistant_message": b"x"}, "assistant_message"),
        ({"reflection": "text"}, "reflection"),
        ({"reflection": {"summary": 1}}, "reflection.summary"),
        ({"reflection": {"summary": "s", "causes": "one"}}, "reflection.causes"),
        ({"reflection": {"summary": "s", "causes": [1]}}, "reflection.causes[0]"),
        ({"token_data": [1]}, "token_data"),
        ({"token_data": {"user": ["1"]}}, "token_data.user"),
        ({"token_data": {"user": [2**40]}}, "token_data.user"),
        ({"token_data": {"user": [1], "encoding": "no such"}}, "token_data.user"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"created_at": 1739900000}, "created_at"),
        ({"cid": "not a cid!"}, "cid"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_and_normalize(IDS | changes)
    assert caught.value.field == field


def test_what_is_no_object_or_too_long_is_refused() -> None:
    payload: Any = "c1"
    with pytest.raises(InvalidInput, match="payload"):
        validate_and_normalize(payload)
    with pytest.raises(TooLarge, match="user_message"):
        validate_and_normalize(IDS | {"user_message": "x" * 1_048_577})


@pytest.mark.parametrize("text", ["記憶反思模組", "plain English", "🙂👩‍👩‍👧 mixed 漢字", ""])
def test_any_script_becomes_whole_numbers(text: str) -> None:
    numbers = tokenize_text(text)
    assert all(type(number) is int for number in numbers)
    assert decode(numbers) == text


def test_a_cid_is_of_the_canonical_record_and_of_nothing_else() -> None:
    first: Any = validate_and_normalize(IDS | {"user_message": "問", "created_at": "2026-01-31T12:00:00Z"})
    again: Any = dict(reversed(first.items()))
    assert cid_of(first) == cid_of(again)
    assert cid_of(first) != cid_of(first | {"user_id": "u2"})
    assert canonical(first).startswith(b'{"conversation_id":"c1","created_at":"2026-01-31T12:00:00+00:00",')
    assert cid_of(first).startswith("baguqeera")
    assert len(cid_of(first)) == 61
