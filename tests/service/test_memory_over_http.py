"""Memory's verbs over HTTP."""

import json
from typing import Any

import httpx
import pytest

from tests.service.talking import TALK, append, contents, is_problem, said

PEANUTS = said("I am allergic to peanuts", id="m1")
NOTED = {"kind": "ModelResponse", "text": "Noted.", "id": "m2"}
WHOLE_USER = {"tenant": "shop", "user": "u42"}


async def test_what_was_appended_is_read_back_in_order(client: httpx.AsyncClient) -> None:
    receipt = await append(client, PEANUTS, NOTED)

    assert receipt.status_code == 200
    assert receipt.json() == {
        "status": "stored", "seq": 2, "kept": ["m1", "m2"], "refused": {}, "stripped": {}, "redacted": {},
    }  # fmt: skip
    assert await contents(client) == ["I am allergic to peanuts", "Noted."]


async def test_a_receipt_counts_what_was_refused_stripped_and_redacted(client: httpx.AsyncClient) -> None:
    receipt = await append(
        client,
        said("write to ann@example.com"),
        {"kind": "ModelResponse", "text": "Done.", "function_calls": [{"name": "mail"}]},
        {"kind": "ToolRequest", "name": "mail", "arguments": {"to": "ann@example.com"}},
        {"kind": "ToolResult", "name": "mail", "result": [1, 2]},
        {"kind": "SystemNote", "text": "be brief"},
        {"kind": "Thought", "text": "hm"},
        {"kind": "DebugTrace", "text": "took 3 ms"},
        {"kind": "UserMessage", "modality": "voice", "summary": "asks for a table", "data": "AAAA"},
    )

    counted = receipt.json()
    assert counted["refused"] == {
        "tool_request": 1, "tool_result": 1, "system_note": 1, "thought": 1, "debug_trace": 1,
    }  # fmt: skip
    assert counted["stripped"] == {"function_call_arguments": 1, "raw_media": 1}
    assert counted["redacted"] == {"EMAIL": 1}
    assert await contents(client) == ["write to [REDACTED:EMAIL]", "Done.", "asks for a table"]


async def test_a_tenant_left_out_is_the_default_one(client: httpx.AsyncClient) -> None:
    await append(client, said("hello"), scope={"user": "u1", "conversation": "c1"})

    assert await contents(client, tenant="default", user="u1") == ["hello"]


async def test_history_pages_back_by_its_cursor(client: httpx.AsyncClient) -> None:
    await append(client, *(said(f"message {number}") for number in range(5)))

    newest = (await client.get("/v1/memory/history", params={**TALK, "limit": 2})).json()
    older = (await client.get("/v1/memory/history", params={**TALK, "limit": 9, "before": newest["before"]})).json()

    assert [message["content"] for message in newest["messages"]] == ["message 3", "message 4"]
    assert [message["seq"] for message in older["messages"]] == [1, 2, 3]
    assert older["before"] is None


async def test_the_idempotency_header_makes_a_retry_safe(client: httpx.AsyncClient) -> None:
    body = {"scope": TALK, "events": [said("once")]}
    first = await client.post("/v1/memory/append", json=body, headers={"Idempotency-Key": "k1"})
    again = await client.post("/v1/memory/append", json=body, headers={"Idempotency-Key": "k1"})

    assert again.json() == first.json()
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert await contents(client) == ["once"]


async def test_a_key_with_another_payload_is_a_conflict(client: httpx.AsyncClient) -> None:
    await append(client, said("one thing"), key="k1")

    assert is_problem(await append(client, said("another"), key="k1"), 409, "conflict")
    assert await contents(client) == ["one thing"]


async def test_two_different_keys_in_one_request_are_refused(client: httpx.AsyncClient) -> None:
    body = {"scope": TALK, "events": [said("once")], "key": "k1"}
    answer = await client.post("/v1/memory/append", json=body, headers={"Idempotency-Key": "k2"})

    assert is_problem(answer, 422, "invalid_input", "key")


async def test_recall_finds_the_message_and_fences_it_as_data(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED)
    answer = await client.post("/v1/memory/recall", json={"scope": WHOLE_USER, "query": "peanuts?", "budget": 200})

    found = answer.json()
    assert [(hit["message_id"], hit["conversation"]) for hit in found["hits"]] == [("m1", "c1")]
    assert found["text"].startswith("<memory")


async def test_a_budget_of_nought_is_answered_with_nothing(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED)
    answer = await client.post("/v1/memory/recall", json={"scope": WHOLE_USER, "query": "peanuts?", "budget": 0})

    assert (answer.status_code, answer.json()) == (
        200,
        {"hits": [], "text": "", "left_out": 1, "degraded": False},
    )


async def test_recall_says_what_the_budget_left_out(client: httpx.AsyncClient) -> None:
    await append(client, *(said(f"peanuts number {number} {'again ' * 30}") for number in range(5)))
    found = await client.post("/v1/memory/recall", json={"scope": WHOLE_USER, "query": "peanuts", "budget": 150})

    assert found.json()["left_out"] == 5 - len(found.json()["hits"]) > 0


async def test_a_critical_message_is_indexed_before_the_answer(client: httpx.AsyncClient) -> None:
    body = {"scope": TALK, "events": [said("Never give me peanuts")]}
    at_once = await client.post("/v1/memory/append", json=body | {"index": "sync"})
    later = await client.post("/v1/memory/append", json=body | {"index": "later"})

    assert at_once.json()["indexed"] is True
    assert "indexed" not in later.json()
    assert is_problem(
        await client.post("/v1/memory/append", json=body | {"index": "soon"}), 422, "invalid_input", "index"
    )


async def test_conversations_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    for name in ("first", "second", "third"):
        await append(client, said("hello"), scope=WHOLE_USER | {"conversation": name})

    page = (await client.get("/v1/memory/conversations", params=WHOLE_USER | {"limit": 2})).json()
    rest = (await client.get("/v1/memory/conversations", params=WHOLE_USER | {"after": page["after"]})).json()

    assert [item["conversation"] for item in page["items"]] == ["third", "second"]
    assert [item["conversation"] for item in rest["items"]] == ["first"]
    assert rest["after"] is None


async def test_stats_count_a_scope_or_the_whole_store(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED)
    await append(client, said("hi"), scope={"user": "other", "conversation": "c1"})

    everyone = (await client.get("/v1/memory/stats")).json()
    one = (await client.get("/v1/memory/stats", params=WHOLE_USER)).json()

    assert (everyone["users"], everyone["messages"]) == (2, 3)
    assert (one["users"], one["by_role"]) == (1, {"assistant": 1, "user": 1})


async def test_erasing_one_message_leaves_the_others(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED)
    answer = await client.post("/v1/memory/erase", json={"scope": TALK, "message_id": "m1"})

    assert answer.json()["complete"] is True
    assert await contents(client) == ["Noted."]


async def test_erasing_a_user_refuses_work_that_began_before(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS)
    began = (await client.get("/v1/memory/history", params=TALK)).json()["generation"]
    proof = await client.post("/v1/memory/erase", json={"scope": WHOLE_USER})
    late = await append(client, said("late"), scope=TALK | {"generation": began})

    assert proof.json()["stores"]["archive"] == {"found": 1, "removed": 1, "failed": 0}
    assert is_problem(late, 410, "scope_erased")
    assert await contents(client) == []


async def test_an_export_is_one_conversation_a_line(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED)
    await append(client, said("hi"), scope={"user": "other", "conversation": "c9"})

    full = await client.get("/v1/memory/export")
    memory = await client.get("/v1/memory/export", params=WHOLE_USER | {"format": "memory"})

    assert full.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["conversation"] for line in full.text.splitlines()] == ["c9", "c1"]
    record = json.loads(memory.text)
    assert (record["sessionId"], record["user_messages"]) == ("c1", ["I am allergic to peanuts"])


async def test_a_lone_surrogate_goes_in_and_comes_out(client: httpx.AsyncClient) -> None:
    body = b'{"scope": {"user": "u", "conversation": "c"}, "events": [{"kind": "UserMessage", "text": "half \\ud83d"}]}'
    stored = await client.post("/v1/memory/append", content=body, headers={"Content-Type": "application/json"})
    read = await client.get("/v1/memory/history", params={"user": "u", "conversation": "c"})
    exported = await client.get("/v1/memory/export")
    question = b'{"scope": {"user": "u"}, "query": "half \\ud83d"}'
    recalled = await client.post("/v1/memory/recall", content=question, headers={"Content-Type": "application/json"})

    assert stored.status_code == 200, stored.text
    for answer in (read, exported, recalled):
        assert answer.status_code == 200
        assert b"half \\ud83d" in answer.content


async def test_texts_in_every_script_are_sent_as_themselves(client: httpx.AsyncClient) -> None:
    await append(client, said("Dị ứng đậu phộng"), said("żółć"), said("花生過敏"), said("🥜 \u0000 NUL"))
    answer = await client.get("/v1/memory/history", params=TALK)

    assert "花生過敏".encode() in answer.content
    assert [message["content"] for message in answer.json()["messages"]][-1] == "🥜 \u0000 NUL"


async def test_a_history_of_any_length_comes_in_pages(client: httpx.AsyncClient) -> None:
    said = [f"message {number}" for number in range(2_100)]
    for start in range(0, len(said), 700):
        events = [{"kind": "UserMessage", "text": text} for text in said[start : start + 700]]
        assert (await client.post("/v1/memory/append", json={"scope": TALK, "events": events})).status_code == 200

    assert await pages(client, "/v1/memory/history", {**TALK, "limit": 2_147_483_647}) == [
        said[1_100:],
        said[100:1_100],
        said[:100],
    ]


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_page_of_history_ends_before_its_text_is_too_long(client: httpx.AsyncClient, by_name: bool) -> None:
    said = [f"{number} " + "long " * 200_000 for number in range(7)]
    for text in said:
        body = {"scope": {"user": "default", "conversation": "c1"}, "events": [{"kind": "UserMessage", "text": text}]}
        assert (await client.post("/v1/memory/append", json=body)).status_code == 200
    path = "/conversations/c1/history" if by_name else "/v1/memory/history"
    params: dict[str, Any] = {"limit": 100} if by_name else {"user": "default", "conversation": "c1", "limit": 100}
    found = await pages(client, path, params)

    assert [text[0] for page in reversed(found) for text in page] == list("0123456")
    assert [len(page) for page in found] == [4, 3]


async def pages(client: httpx.AsyncClient, path: str, params: dict[str, Any]) -> list[list[str]]:
    found: list[list[str]] = []
    before: int | None = None
    while before is not None or not found:
        answer = (await client.get(path, params=params | ({} if before is None else {"before": before}))).json()
        found.append([one["content"] for one in answer["messages"]])
        before = answer["before"]
    return found


async def test_a_text_is_forgotten_and_not_taken_back_from_a_model(client: httpx.AsyncClient) -> None:
    await append(client, PEANUTS, NOTED, said("i am ALLERGIC to peanuts, you know"))
    proof = await client.post("/v1/memory/forget", json={"scope": WHOLE_USER, "text": "I am allergic to peanuts"})

    assert proof.status_code == 200
    assert proof.json()["stores"]["archive"] == {"found": 2, "removed": 2, "failed": 0}
    again = await append(client, {"kind": "ModelResponse", "text": "I am allergic to peanuts."})
    assert again.json()["refused"] == {"erased": 1}
    assert await contents(client) == ["Noted."]
    await append(client, said("I am allergic to peanuts"))
    assert await contents(client) == ["Noted.", "I am allergic to peanuts"]


async def test_forgetting_nothing_names_the_field(client: httpx.AsyncClient) -> None:
    for body in ({"scope": WHOLE_USER}, {"scope": WHOLE_USER, "text": " "}, {"scope": WHOLE_USER, "text": 5}):
        assert (await client.post("/v1/memory/forget", json=body)).json()["field"].endswith("text")
