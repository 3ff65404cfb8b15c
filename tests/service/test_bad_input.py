"""Bad input over HTTP: a problem document that names the field, says the fix, repeats nothing; and nothing kept."""

import json
from typing import Any

import httpx
import pytest

from tests.service.talking import TALK, append, is_problem, messages_kept, said

SECRET = "hunter2-the-secret"


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ({}, "scope.user"),
        ({"user": "", "conversation": "c"}, "scope.user"),
        ({"user": "u", "conversation": ""}, "scope.conversation"),
        ({"user": "u"}, "scope.conversation"),
        ({"user": "u" * 256, "conversation": "c"}, "scope.user"),
        ({"user": "u\n", "conversation": "c"}, "scope.user"),
        ({"user": 7, "conversation": "c"}, "scope.user"),
        ({"tenant": None, "user": "u", "conversation": "c"}, "scope.tenant"),
        ("u", "scope"),
        ({"user": "u", "conversation": "c", SECRET: 1}, "scope"),
    ],
)
async def test_a_bad_scope_is_refused_by_name(client: httpx.AsyncClient, scope: Any, field: str) -> None:
    answer = await append(client, said("hello"), scope=scope)

    assert is_problem(answer, 422, "invalid_scope", field)
    assert SECRET not in answer.text
    assert await messages_kept(client) == 0


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"kind": SECRET, "text": "x"}, "events[1].kind"),
        ({"text": "x"}, "events[1].kind"),
        ({"kind": "UserMessage", "text": 7}, "events[1].text"),
        ({"kind": "UserMessage", "text": "x", SECRET: SECRET}, "events[1]"),
        ({"kind": "UserMessage", "text": "x", "modality": SECRET}, "events[1].modality"),
        ({"kind": "UserMessage", "text": "x", "language": SECRET}, "events[1].language"),
        ({"kind": "UserMessage", "text": "x", "ts": "2026-01-01T00:00:00"}, "events[1].ts"),
        ({"kind": "UserMessage", "text": "x", "ts": SECRET}, "events[1].ts"),
        ({"kind": "UserMessage", "text": "x", "ts": 1_700_000_000}, "events[1].ts"),
        ({"kind": "UserMessage", "text": "x", "ts": "0001-01-01T00:00:00+14:00"}, "events[1].ts"),
        ({"kind": "UserMessage", "text": "x", "id": ""}, "events[1].id"),
        ({"kind": "UserMessage", "text": "x", "meta": [SECRET]}, "events[1].meta"),
        ({"kind": "ModelResponse", "text": "x", "function_calls": SECRET}, "events[1].function_calls"),
        ({"kind": "Thought"}, "events[1].text"),
        (SECRET, "events[1]"),
    ],
)
async def test_a_bad_event_is_refused_with_its_place_and_its_neighbours_are_not_kept(
    client: httpx.AsyncClient, event: Any, field: str
) -> None:
    answer = await append(client, said("a good one"), event)

    assert is_problem(answer, 422, "invalid_event", field)
    assert SECRET not in answer.text
    assert await messages_kept(client) == 0


async def test_media_without_a_summary_is_refused_and_counted(client: httpx.AsyncClient) -> None:
    answer = await append(client, {"kind": "UserMessage", "modality": "image", "data": "iVBORw0KGgo="})

    assert answer.status_code == 200
    assert (answer.json()["kept"], answer.json()["refused"]) == ([], {"media_without_summary": 1})
    assert await messages_kept(client) == 0


async def test_a_ten_megabyte_message_is_refused_with_the_limit_named(client: httpx.AsyncClient) -> None:
    answer = await append(client, said("x" * 10_000_000))

    assert is_problem(answer, 413, "too_large", "body")
    assert "1,048,576" in answer.json()["fix"]
    assert await messages_kept(client) == 0


async def test_a_message_just_over_the_limit_is_refused_with_its_place(client: httpx.AsyncClient) -> None:
    answer = await append(client, said("fits"), said("ż" * 524_289))

    assert is_problem(answer, 413, "too_large", "events[1].text")
    assert "1,048,576" in answer.json()["fix"]
    assert await messages_kept(client) == 0


async def test_a_message_of_exactly_the_limit_is_kept(client: httpx.AsyncClient) -> None:
    answer = await append(client, said("a b " * 262_144))

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("announced", [True, False])
async def test_an_oversized_body_is_cut_off_whether_or_not_its_length_is_announced(
    client: httpx.AsyncClient, announced: bool
) -> None:
    sent = 0

    async def body() -> Any:
        nonlocal sent
        for _ in range(100):
            sent += 1_000_000
            yield b" " * 1_000_000

    headers = {"Content-Type": "application/json"} | ({"Content-Length": "100000000"} if announced else {})
    answer = await client.post("/v1/memory/append", content=body(), headers=headers)

    assert is_problem(answer, 413, "too_large", "body")
    assert sent <= 100_000_000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"scope": "\xff\xfe"}', "invalid_utf8"),
        (b'{"scope": "\xed\xa0\x80"}', "invalid_utf8"),
        ('{"scope": {}}'.encode("utf-16"), "invalid_utf8"),
        (b'{"scope": ', "invalid_json"),
        (b"hunter2-the-secret", "invalid_json"),
        (b'{"k": NaN}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"1" * 10_000, "invalid_json"),
    ],
)
async def test_a_body_that_is_not_json_in_utf8_is_refused(client: httpx.AsyncClient, body: bytes, code: str) -> None:
    answer = await client.post("/v1/memory/append", content=body, headers={"Content-Type": "application/json"})

    assert is_problem(answer, 400, code)
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b'{"scope": {"user": "hunter2-the-secret"}, "scope": {"user": "v"}, "query": "x"}',
        b'{"scope": {"user": "hunter2-the-secret", "user": "v"}, "query": "x"}',
        b'{"scope": {"user": "hunter2-the-secret", "\\u0075ser": "v"}, "query": "x"}',
    ],
)
async def test_a_field_that_is_given_twice_is_refused_at_any_depth(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/memory/recall", content=body, headers={"Content-Type": "application/json"})

    assert is_problem(answer, 400, "repeated_field")
    assert SECRET not in answer.text


async def test_two_idempotency_headers_are_refused(client: httpx.AsyncClient) -> None:
    headers = [("Idempotency-Key", "k1"), ("idempotency-key", "k2")]
    answer = await client.post("/v1/memory/append", json={"scope": TALK, "events": [said("once")]}, headers=headers)

    assert is_problem(answer, 400, "repeated_header", "Idempotency-Key")
    assert await messages_kept(client) == 0


@pytest.mark.parametrize(("key", "fix"), [("", "1 character or more"), ("k" * 256, "at most 255 characters")])
async def test_a_bad_idempotency_header_is_named_with_its_fix(client: httpx.AsyncClient, key: str, fix: str) -> None:
    body = {"scope": TALK, "events": [said("once")]}
    answer = await client.post("/v1/memory/append", json=body, headers={"Idempotency-Key": key})

    assert is_problem(answer, 422, "invalid_input", "Idempotency-Key")
    assert fix in answer.json()["fix"]
    assert await messages_kept(client) == 0


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"7"])
async def test_a_body_that_is_not_an_object_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/memory/append", content=body, headers={"Content-Type": "application/json"})

    assert is_problem(answer, 422, "invalid_input", "body")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_a_body_of_another_type_is_refused(client: httpx.AsyncClient, content_type: str | None) -> None:
    """A web page may send these without asking first, JSON not."""
    headers = {"Content-Type": content_type} if content_type else {}
    body = json.dumps({"scope": TALK, "events": [said("hello")]}).encode()

    assert is_problem(await client.post("/v1/memory/append", content=body, headers=headers), 415, "not_json")
    assert await messages_kept(client) == 0


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ("conversation=c", 422, "invalid_scope", "user"),
        ("user=&conversation=c", 422, "invalid_scope", "user"),
        ("user=u&conversation=c&limit=0", 422, "invalid_input", "limit"),
        ("user=u&conversation=c&limit=99999999999999999999", 422, "invalid_input", "limit"),
        ("user=u&conversation=c&limit=hunter2-the-secret", 422, "invalid_input", "limit"),
        ("user=u&conversation=c&before=-1", 422, "invalid_input", "before"),
        ("user=u&conversation=c&hunter2-the-secret=1", 422, "invalid_input", "query"),
        ("user=%ff&conversation=c", 400, "invalid_utf8", None),
        ("user=u&user=v&conversation=c", 400, "repeated_parameter", None),
    ],
)
async def test_a_bad_query_string_is_refused(
    client: httpx.AsyncClient, query: str, status: int, code: str, field: str | None
) -> None:
    answer = await client.get(f"/v1/memory/history?{query}")

    assert is_problem(answer, status, code, field)
    assert SECRET not in answer.text


async def test_a_tenant_without_a_user_is_not_taken_for_the_whole_store(client: httpx.AsyncClient) -> None:
    for path in ("stats", "export"):
        assert is_problem(await client.get(f"/v1/memory/{path}?tenant=shop"), 422, "invalid_scope", "user")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scope": {"user": "u"}, "query": 7}, "query"),
        ({"scope": {"user": "u"}, "query": "x", "k": 0}, "k"),
        ({"scope": {"user": "u"}, "query": "x", "k": True}, "k"),
        ({"scope": {"user": "u"}, "query": "x", "budget": "many"}, "budget"),
        ({"scope": {"user": "u"}, "query": "x", "budget": -1}, "budget"),
        ({"scope": {"user": "u"}, "query": "x" * 100_001}, "query"),
    ],
)
async def test_a_bad_question_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    assert is_problem(await client.post("/v1/memory/recall", json=body), 422, "invalid_input", field)


ODD_QUESTIONS = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "🥜🥜 🤔",
    "little words": "what is it with the and of",
    "little words, Vietnamese": "là của và",
    "one hundred kilobytes": "peanuts " * 12_500,
    "quotes": "'; DROP TABLE tk_messages; --",
    "operators": '"peanuts" AND NEAR(x *) OR -()',
    "a null": "peanuts \0",
    "a lone surrogate": "peanuts \ud800",
}


@pytest.mark.parametrize("query", ODD_QUESTIONS.values(), ids=ODD_QUESTIONS)
async def test_an_odd_question_is_answered_or_nothing_is_found(client: httpx.AsyncClient, query: str) -> None:
    await append(client, said("I am allergic to peanuts"))
    body = json.dumps({"scope": {"tenant": "shop", "user": "u42"}, "query": query}).encode()
    answer = await client.post("/v1/memory/recall", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 200, answer.text
    assert ("peanuts" in query) <= (len(answer.json()["hits"]) == 1)
    assert answer.json()["text"].count("</memory>") == len(answer.json()["hits"])


async def test_a_very_long_question_is_answered(client: httpx.AsyncClient) -> None:
    await append(client, said("word7 stands here"))
    query = " ".join(f"word{number}" for number in range(10_000))
    answer = await client.post("/v1/memory/recall", json={"scope": {"tenant": "shop", "user": "u42"}, "query": query})

    assert answer.status_code == 200, answer.text
    assert len(answer.json()["hits"]) == 1


@pytest.mark.parametrize("message_id", ["", "\ud800", "x" * 256, "line\nbreak"])
async def test_a_bad_message_id_is_refused(client: httpx.AsyncClient, message_id: str) -> None:
    body = json.dumps({"scope": TALK, "message_id": message_id}).encode()
    answer = await client.post("/v1/memory/erase", content=body, headers={"Content-Type": "application/json"})

    assert is_problem(answer, 422, "invalid_event", "message_id")


async def test_one_message_cannot_be_erased_without_its_conversation(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/memory/erase", json={"scope": {"user": "u"}, "message_id": "m1"})

    assert is_problem(answer, 422, "invalid_scope", "conversation")
