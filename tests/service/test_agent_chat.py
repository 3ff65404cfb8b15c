"""`/agent/chat`, `/agent/health` and `/api/chat`: what they take, answer and refuse."""

import base64
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.talking import is_problem
from threadkeep.http.app import create_app
from threadkeep.settings import Settings
from threadkeep.testing.traces import Traces

SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
VOICE = {"data": base64.b64encode(b"RIFF....").decode(), "mimeType": "audio/wav"}


async def chat(client: httpx.AsyncClient, message: str | None = "hello", /, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"sessionId": SESSION} | ({} if message is None else {"message": message}) | more
    return await client.post("/agent/chat", json=body, headers=headers)


def is_envelope(answer: httpx.Response, status: int, code: str, field: str | None = None) -> bool:
    assert answer.headers["content-type"] == "application/json", answer.text
    envelope = answer.json()
    assert envelope.keys() == {"code", "message", "status", "traceId", "details"}
    assert (answer.status_code, envelope["status"], envelope["code"]) == (status, status, code), answer.text
    assert envelope["details"]["field"] == field
    assert envelope["traceId"] == answer.headers["x-request-id"]
    return True


async def test_a_reply_has_the_session_the_language_and_the_words(talking: httpx.AsyncClient) -> None:
    answer = await chat(talking)

    assert answer.status_code == 200
    assert answer.json() == {"sessionId": SESSION, "language": "en", "reply": "Your first question."}


async def test_a_follow_up_is_answered_out_of_the_talk_and_tools_are_named(talking: httpx.AsyncClient) -> None:
    await chat(talking, "I am allergic to peanuts")

    answer = await chat(talking, "Is there a room?", voiceMode=True, client={"app": "web", "version": "1"})

    assert answer.json()["reply"] == "After 1 questions, first 'I am allergic to peanuts'."
    assert answer.json()["toolTrace"] == [{"name": "rooms", "status": "OK", "durationMs": 3}]


async def test_the_callers_token_goes_to_the_tools_and_nowhere_else(
    talking: httpx.AsyncClient, scripts: Scripts, database: Path
) -> None:
    await chat(talking, headers={"Authorization": "Bearer the.callers.token"})

    assert scripts.latest.asked[-1].token == "the.callers.token"
    assert "the.callers.token" not in repr(scripts.latest.asked[-1])
    assert Traces(["the.callers.token"]).in_folder(database.parent) == set()


async def test_a_request_id_goes_in_and_out_and_on(talking: httpx.AsyncClient, scripts: Scripts) -> None:
    answer = await chat(talking, headers={"X-Request-ID": "abc-1"})

    assert answer.headers["x-request-id"] == "abc-1"
    assert scripts.latest.asked[-1].request_id == "abc-1"


@pytest.mark.parametrize(
    "session", ["", "abc", "not-a-uuid", "65d31fee-e11b-11f1-9e8e-02fc00000001", SESSION[:-1], f"{SESSION} ", 7, None]
)
async def test_a_session_that_is_not_a_uuid_of_version_4_is_refused(talking: httpx.AsyncClient, session: Any) -> None:
    answer = await talking.post("/agent/chat", json={"sessionId": session, "message": "hello"})

    assert is_envelope(answer, 400, "invalid_input", "sessionId")


async def test_neither_message_nor_audio_is_refused(talking: httpx.AsyncClient) -> None:
    assert is_envelope(await chat(talking, None), 400, "invalid_input", "message")


@pytest.mark.parametrize("message", ["", "   ", "a\x00b", "\x7f", 7])
async def test_what_is_not_text_is_refused(talking: httpx.AsyncClient, message: Any) -> None:
    assert is_envelope(await chat(talking, message), 400, "invalid_input", "message")


async def test_a_megabyte_is_refused_as_too_large(talking: httpx.AsyncClient) -> None:
    assert is_envelope(await chat(talking, "x" * 1_000_000), 413, "too_large", "message")


async def test_a_body_past_all_limits_is_cut_off_and_one_that_is_not_json_refused(talking: httpx.AsyncClient) -> None:
    sent = {"Content-Type": "application/json"}
    large = await talking.post("/agent/chat", content=b" " * 10_000_000, headers=sent)
    broken = await talking.post("/agent/chat", content=b'{"message": "\xff"}', headers=sent)

    assert is_envelope(large, 413, "too_large", "body")
    assert is_envelope(broken, 400, "invalid_utf8")


@pytest.mark.parametrize("kind", ["video/mp4", "text/plain", "", "audio", "audio/x-unknown"])
async def test_audio_of_a_kind_that_is_not_known_is_refused(talking: httpx.AsyncClient, kind: str) -> None:
    answer = await chat(talking, None, audio=VOICE | {"mimeType": kind})

    assert is_envelope(answer, 400, "invalid_input", "audio.mimeType")


async def test_audio_that_is_too_long_or_not_base64_is_refused(talking: httpx.AsyncClient) -> None:
    long = await chat(talking, None, audio=VOICE | {"data": base64.b64encode(b"x" * 4_194_400).decode()})
    odd = await chat(talking, None, audio=VOICE | {"data": "***"})

    assert is_envelope(long, 413, "too_large", "audio.data")
    assert is_envelope(odd, 400, "invalid_input", "audio.data")


@pytest.mark.parametrize(
    ("text", "status", "code"), [("time out", 504, "model_timeout"), ("be away", 502, "model_unavailable")]
)
async def test_a_model_that_fails_is_told_and_what_was_said_is_kept(
    talking: httpx.AsyncClient, text: str, status: int, code: str
) -> None:
    answer = await chat(talking, f"please {text}")
    kept = await talking.get(f"/conversations/{SESSION}/history")

    assert is_envelope(answer, status, code)
    assert [one["content"] for one in kept.json()["messages"]] == [f"please {text}"]


async def test_what_nobody_foresaw_is_an_envelope_without_a_word_of_it(talking: httpx.AsyncClient) -> None:
    answer = await chat(talking, "please stumble over peanuts")

    assert is_envelope(answer, 500, "internal_error")
    assert "peanuts" not in answer.text


async def test_the_thirty_first_request_of_a_minute_waits(talking: httpx.AsyncClient) -> None:
    answers = [await chat(talking, f"message {number}") for number in range(31)]
    other = await talking.post("/agent/chat", json={"sessionId": str(uuid.uuid4()), "message": "hello"})

    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert is_envelope(answers[-1], 429, "rate_limited")
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert other.status_code == 200


async def test_the_same_key_is_answered_once(talking: httpx.AsyncClient, scripts: Scripts) -> None:
    first = await chat(talking, headers={"Idempotency-Key": "k"})
    again = await chat(talking, headers={"Idempotency-Key": "k"})
    other = await chat(talking, "something else", headers={"Idempotency-Key": "k"})

    assert first.json()["reply"] == again.json()["reply"]
    assert again.headers["idempotent-replayed"] == "true"
    assert len(scripts.latest.asked) == 1
    assert is_envelope(other, 409, "conflict")


async def test_without_an_assistant_the_message_is_kept_and_it_is_said_that_nobody_answers(
    client: httpx.AsyncClient,
) -> None:
    assert is_envelope(await chat(client), 501, "capability_missing")
    kept = await client.get(f"/conversations/{SESSION}/history")
    assert [one["content"] for one in kept.json()["messages"]] == ["hello"]


async def test_health_tells_whether_somebody_answers_and_remembers(
    client: httpx.AsyncClient, talking: httpx.AsyncClient
) -> None:
    assert (await client.get("/agent/health")).json() == {
        "status": "ok", "assistant": False, "stores": {"archive": "ok"},
    }  # fmt: skip
    assert (await talking.get("/agent/health")).json()["assistant"] is True


async def test_api_chat_answers_under_the_names_its_callers_know(talking: httpx.AsyncClient) -> None:
    body = {"conversation_id": "c1", "user_id": "user_1", "user_message": "我最近睡不好"}

    answer = await talking.post("/api/chat", json=body)

    assert answer.status_code == 200
    told = answer.json()
    assert told.keys() == {"conversation_id", "user_id", "assistant_message", "reflection", "created_at"}
    assert (told["conversation_id"], told["user_id"], told["reflection"]) == ("c1", "user_1", None)
    kept = await talking.get("/conversations/c1/history", headers={"X-User-ID": "user_1"})
    assert [one["content"] for one in kept.json()["messages"]] == ["我最近睡不好", told["assistant_message"]]


@pytest.mark.parametrize("missing", ["conversation_id", "user_id", "user_message"])
async def test_api_chat_refuses_what_lacks_a_name(talking: httpx.AsyncClient, missing: str) -> None:
    body = {"conversation_id": "c1", "user_id": "user_1", "user_message": "hello"}
    body.pop(missing)

    code = "invalid_input" if missing == "user_message" else "invalid_scope"
    assert is_problem(await talking.post("/api/chat", json=body), 422, code, missing)


async def test_pages_of_other_origins_may_not_call_unless_they_are_named(database: Path) -> None:
    asking = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    url = f"sqlite:///{database}"
    async with client_of(create_app(Settings(DATABASE_URL=url))) as client:
        refused = await client.options("/agent/chat", headers=asking)
    named = Settings(DATABASE_URL=url, THREADKEEP_CORS_ORIGINS="https://shop.example")  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(named)) as client:
        allowed = await client.options("/agent/chat", headers=asking)
        other = await client.options("/agent/chat", headers=asking | {"Origin": "https://evil.example"})

    assert "access-control-allow-origin" not in refused.headers
    assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    assert "access-control-allow-origin" not in other.headers


async def test_no_log_line_holds_what_was_said(talking: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "threadkeep"):
        await chat(talking, "please time out, peanuts")
        await chat(talking, "please stumble over peanuts")

    assert "peanuts" not in caplog.text
    told = [json.loads(message) for message in caplog.messages if message.startswith("{")]
    assert {"unanswered", "request", "failure"} <= {line["event"] for line in told}
