"""Conversations over HTTP: begun, spoken in, read, forgotten."""

import asyncio
import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.mcp.serving import bearer, settings_for
from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.talking import is_problem
from threadkeep import Settings, open_memory
from threadkeep.compose.assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.models.embedders.offline import OfflineEmbedder


async def begun(client: httpx.AsyncClient, **headers: str) -> str:
    answer = await client.post("/conversations", headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["conversation_id"]


async def say(client: httpx.AsyncClient, talk: str, content: Any, wait: bool = True, **headers: str) -> httpx.Response:
    params = {"wait": "true"} if wait else {}
    body = json.dumps({"content": content}).encode()  # escaped: httpx's own cannot send half a character
    sent = headers | {"Content-Type": "application/json"}
    return await client.post(f"/conversations/{talk}/messages", content=body, params=params, headers=sent)


async def contents(client: httpx.AsyncClient, talk: str) -> list[str]:
    answer = await client.get(f"/conversations/{talk}/history", params={"limit": 1_000})
    assert answer.status_code == 200, answer.text
    return [one["content"] for one in answer.json()["messages"]]


async def until_said(client: httpx.AsyncClient, talk: str, count: int) -> list[str]:
    async with asyncio.timeout(20):
        while len(found := await contents(client, talk)) < count:
            await asyncio.sleep(0.01)
    return found


async def test_a_conversation_is_begun_with_the_greeting_which_is_kept(talking: httpx.AsyncClient) -> None:
    answer = await talking.post("/conversations", json={"language": "vi"})

    assert answer.status_code == 201
    assert answer.json()["greeting"]["content"] == "Good day!"
    assert answer.json()["language"] == "vi"
    assert await contents(talking, answer.json()["conversation_id"]) == ["Good day!"]


@pytest.mark.parametrize(
    ("given", "told"), [("en", "en"), ("en-US", "en"), ("EN-gb", "en"), ("xx", "vi"), ("pl", "vi"), ("zh-Hant", "vi")]
)
async def test_a_talk_is_held_in_a_language_of_the_assistant(database: Path, given: str, told: str) -> None:
    """One that it does not speak is not kept: the first message that tells one still decides."""
    settings = Settings(DATABASE_URL=f"sqlite:///{database}")
    opener = partial(open_assistant, settings=settings, folder="examples/pc_shop")
    async with client_of(create_app(settings, responder_opener=opener)) as client:
        answer = await client.post("/conversations", json={"language": given, "conversation_id": "named"})
        assert (answer.status_code, answer.json()["language"]) == (201, told)
        assert answer.json()["greeting"]["language"] == told
        said = {"content": "I would like to build a computer for games", "language": given}
        replied = await client.post("/conversations/named/messages", json=said, params={"wait": "true"})
        assert replied.json()["answer"]["language"] == "en"
        assert (await client.get("/conversations/named/history")).json()["language"] == "en"


async def test_a_message_is_acknowledged_at_once_with_its_id_and_answered_later(
    talking: httpx.AsyncClient, scripts: Scripts
) -> None:
    talk = await begun(talking)
    scripts.latest.may_go_on.clear()

    answer = await say(talking, talk, "I am allergic to peanuts", wait=False)
    kept = (await talking.get(f"/conversations/{talk}/history")).json()["messages"][-1]
    scripts.latest.may_go_on.set()

    assert answer.status_code == 202
    assert answer.json()["answer"] == "pending"
    assert (kept["id"], kept["seq"]) == (answer.json()["message_id"], answer.json()["seq"])
    assert await until_said(talking, talk, 3) == ["Good day!", "I am allergic to peanuts", "Your first question."]


async def test_with_wait_the_answer_comes_in_place(talking: httpx.AsyncClient) -> None:
    talk = await begun(talking)
    await say(talking, talk, "I am allergic to peanuts")

    answer = await say(talking, talk, "Is there a room?")

    assert answer.status_code == 200
    said = answer.json()["answer"]
    assert said["content"] == "After 1 questions, first 'I am allergic to peanuts'."
    assert said["tools"] == [{"name": "rooms", "ok": True, "ms": 3}]
    assert (await contents(talking, talk))[-1] == said["content"]


async def test_messages_of_one_talk_are_answered_in_their_order(talking: httpx.AsyncClient, scripts: Scripts) -> None:
    talk = await begun(talking)
    scripts.latest.may_go_on.clear()
    for number in range(5):
        assert (await say(talking, talk, f"question {number}", wait=False)).status_code == 202
    scripts.latest.may_go_on.set()

    await until_said(talking, talk, 11)

    assert [asked.text for asked in scripts.latest.asked] == [f"question {number}" for number in range(5)]


async def test_the_model_hears_what_was_said_and_the_store_keeps_it_redacted(
    talking: httpx.AsyncClient, scripts: Scripts
) -> None:
    talk = await begun(talking)

    await say(talking, talk, "write to ann@example.com")

    assert scripts.latest.asked[-1].text == "write to ann@example.com"
    assert "ann@example.com" not in "".join(await contents(talking, talk))


async def test_without_an_assistant_messages_are_kept_and_nobody_answers(client: httpx.AsyncClient) -> None:
    talk = await begun(client)

    assert (await say(client, talk, "hello", wait=False)).json()["answer"] == "none"
    assert is_problem(await say(client, talk, "hello?"), 501, "capability_missing")
    assert await contents(client, talk) == ["hello", "hello?"]


async def test_history_is_paged_by_a_cursor(client: httpx.AsyncClient) -> None:
    talk = await begun(client)
    for number in range(7):
        await say(client, talk, f"message {number}", wait=False)

    pages: list[list[str]] = []
    before: int | None = None
    while True:
        params = {"limit": 3} | ({} if before is None else {"before": before})
        page = (await client.get(f"/conversations/{talk}/history", params=params)).json()
        pages.append([one["content"] for one in page["messages"]])
        if (before := page["before"]) is None:
            break

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [one for page in reversed(pages) for one in page] == [f"message {number}" for number in range(7)]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/messages"),
        ("GET", "/history"),
        ("GET", "/stream"),
        ("DELETE", ""),
        ("DELETE", "/messages/m1"),
    ],
)
async def test_an_unknown_conversation_is_not_found(client: httpx.AsyncClient, method: str, path: str) -> None:
    body = {"json": {"content": "hi"}} if method == "POST" else {}
    answer = await client.request(method, f"/conversations/nowhere{path}", **body)  # pyright: ignore[reportArgumentType]

    assert is_problem(answer, 404, "not_found")
    assert (await client.get("/v1/memory/stats")).json()["conversations"] == 0


async def test_an_empty_conversation_is_known_and_has_no_messages(client: httpx.AsyncClient) -> None:
    talk = await begun(client)

    assert await contents(client, talk) == []


async def test_a_conversation_may_have_an_id_of_the_callers_own_making_once(client: httpx.AsyncClient) -> None:
    first = await client.post("/conversations", json={"conversation_id": "order 7/ż"})
    again = await client.post("/conversations", json={"conversation_id": "order 7/ż"})

    assert first.json()["conversation_id"] == "order 7/ż"
    assert is_problem(again, 409, "conflict")


async def test_a_conversation_is_begun_once_for_a_key(talking: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await talking.post("/conversations", headers=key)
    again = await talking.post("/conversations", headers=key)

    assert first.json()["conversation_id"] == again.json()["conversation_id"]
    assert first.json()["greeting"]["message_id"] == again.json()["greeting"]["message_id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert await contents(talking, first.json()["conversation_id"]) == ["Good day!"]


async def test_a_message_with_a_key_is_kept_and_answered_once(talking: httpx.AsyncClient, scripts: Scripts) -> None:
    talk = await begun(talking)
    key = {"Idempotency-Key": "k1"}

    first = await say(talking, talk, "hello", **key)
    again = await say(talking, talk, "hello", **key)
    acknowledged = await say(talking, talk, "hello", wait=False, **key)

    assert first.json() == again.json() | {"answer": first.json()["answer"]}
    assert again.json()["answer"]["content"] == first.json()["answer"]["content"]
    assert again.headers["idempotent-replayed"] == "true"
    assert acknowledged.json()["message_id"] == first.json()["message_id"]
    assert len(scripts.latest.asked) == 1
    assert is_problem(await say(talking, talk, "another", **key), 409, "conflict")


async def test_a_message_that_was_not_answered_is_answered_when_its_key_comes_again(
    talking: httpx.AsyncClient, scripts: Scripts
) -> None:
    talk = await begun(talking)

    first = await say(talking, talk, "please time out", **{"Idempotency-Key": "k1"})
    again = await say(talking, talk, "please time out", **{"Idempotency-Key": "k1"})

    assert is_problem(first, 504, "model_timeout")
    assert is_problem(again, 504, "model_timeout")
    assert len(scripts.latest.asked) == 2
    assert await contents(talking, talk) == ["Good day!", "please time out"]


@pytest.mark.parametrize(
    ("text", "status", "code"), [("time out", 504, "model_timeout"), ("be away", 502, "model_unavailable")]
)
async def test_a_model_that_fails_leaves_what_was_said(
    talking: httpx.AsyncClient, text: str, status: int, code: str
) -> None:
    talk = await begun(talking)

    answer = await say(talking, talk, f"please {text}")

    assert is_problem(answer, status, code)
    assert answer.headers["retry-after"] == "1"
    assert await contents(talking, talk) == ["Good day!", f"please {text}"]


async def test_a_conversation_is_forgotten_with_a_receipt_and_gone(talking: httpx.AsyncClient) -> None:
    talk = await begun(talking)
    await say(talking, talk, "I am allergic to peanuts")

    proof = await talking.delete(f"/conversations/{talk}")
    again = await talking.delete(f"/conversations/{talk}")

    assert proof.status_code == again.status_code == 200
    assert proof.json()["complete"] is True
    assert sum(part["removed"] for part in proof.json()["stores"].values()) >= 3
    assert (await talking.get(f"/conversations/{talk}/history")).status_code == 404
    recalled = await talking.post("/v1/memory/recall", json={"scope": {"user": "default"}, "query": "peanuts"})
    assert recalled.json()["hits"] == []


async def test_a_talk_of_questions_to_documents_alone_is_forgotten_by_its_user_only(database: Path) -> None:
    settings = settings_for(f"sqlite:///{database}")
    async with client_of(create_app(settings)) as client:

        async def asked_before(user: str) -> int:
            headers = bearer(user) | {"X-Conversation-ID": "talk"}
            answer = await client.post("/retrieval/query", json={"query": "peanut soup"}, headers=headers)
            return answer.json()["metrics"]["queryCount"] - 1

        assert [await asked_before("ann"), await asked_before("ann")] == [0, 1]
        others = [await client.delete("/conversations/talk", headers=bearer(name)) for name in ("bob", "eve")]
        assert all(is_problem(one, 404, "not_found") for one in others)
        assert await asked_before("ann") == 2
        proof = await client.delete("/conversations/talk", headers=bearer("ann"))
        again = await client.delete("/conversations/talk", headers=bearer("ann"))
        assert proof.status_code == again.status_code == 200
        assert proof.json()["stores"]["checkpoints"]["removed"] > 0
        assert await asked_before("ann") == 0


async def test_a_message_is_forgotten_with_its_vectors(talking: httpx.AsyncClient) -> None:
    talk = await begun(talking)
    said = (await say(talking, talk, "I am allergic to peanuts")).json()["message_id"]

    proof = await talking.delete(f"/conversations/{talk}/messages/{said}")

    assert proof.status_code == 200
    assert proof.json()["complete"] is True
    assert await contents(talking, talk) == ["Good day!", "Your first question."]
    recalled = await talking.post("/v1/memory/recall", json={"scope": {"user": "default"}, "query": "peanuts"})
    assert "I am allergic to peanuts" not in {hit["content"] for hit in recalled.json()["hits"]}


@pytest.mark.parametrize("content", ["", "  \n", "a\x00b", "\x1b[31m", "half \ud83d", 7, None])
async def test_what_is_not_text_is_refused_and_not_kept(client: httpx.AsyncClient, content: Any) -> None:
    talk = await begun(client)

    assert is_problem(await say(client, talk, content, wait=False), 422, "invalid_input", "content")
    assert await contents(client, talk) == []


async def test_a_megabyte_is_too_much_for_one_message(client: httpx.AsyncClient) -> None:
    talk = await begun(client)

    answer = await say(client, talk, "x" * 1_000_000, wait=False)

    assert is_problem(answer, 413, "too_large", "content")
    assert "THREADKEEP_MAX_CHAT_BYTES" in answer.json()["fix"]
    assert await contents(client, talk) == []


async def test_a_path_that_is_not_utf8_is_refused(client: httpx.AsyncClient) -> None:
    assert is_problem(await client.get("/conversations/%ff%fe/history"), 400, "invalid_utf8")


class _Held(OfflineEmbedder):
    """Embeds nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.asked = asyncio.Event()

    async def embed(self, texts: Any) -> Any:
        self.asked.set()
        await self.may_go_on.wait()
        return await super().embed(texts)


async def test_a_message_is_acknowledged_while_its_embedding_waits(database: Path) -> None:
    embedder = _Held()
    settings = Settings(DATABASE_URL=f"sqlite:///{database}")
    opener = partial(open_memory, settings=settings, embedder=embedder)
    async with client_of(create_app(settings, opener)) as client:
        talk = await begun(client)
        answer = await say(client, talk, "I am allergic to peanuts", wait=False)
        async with asyncio.timeout(20):
            await embedder.asked.wait()
        kept = await contents(client, talk)
        embedder.may_go_on.set()

    assert answer.status_code == 202
    assert kept == ["I am allergic to peanuts"]


async def test_history_names_what_nobody_answered(talking: httpx.AsyncClient) -> None:
    talk = (await talking.post("/conversations", json={})).json()["conversation_id"]
    path = f"/conversations/{talk}"
    for text in ("the first one", "time out now", "the third one"):
        await talking.post(f"{path}/messages", params={"wait": True}, json={"content": text})

    page = (await talking.get(f"{path}/history")).json()
    (failed,) = [one for one in page["messages"] if one["content"] == "time out now"]
    assert page["unanswered"] == [failed["id"]]

    third = next(one for one in page["messages"] if one["content"] == "the third one")
    up_to_the_first = (await talking.get(f"{path}/history", params={"before": failed["seq"] - 1, "limit": 1})).json()
    up_to_the_third = (await talking.get(f"{path}/history", params={"before": third["seq"] + 1, "limit": 2})).json()
    assert [one["content"] for one in up_to_the_first["messages"]] == ["the first one"]
    assert up_to_the_first["unanswered"] == []
    assert up_to_the_third["unanswered"] == [failed["id"]]


async def test_what_is_being_answered_is_not_called_unanswered(talking: httpx.AsyncClient, scripts: Scripts) -> None:
    talk = (await talking.post("/conversations", json={})).json()["conversation_id"]
    scripts.latest.may_go_on.clear()
    said = await talking.post(f"/conversations/{talk}/messages", json={"content": "take your time"})

    meanwhile = (await talking.get(f"/conversations/{talk}/history")).json()
    scripts.latest.may_go_on.set()

    assert meanwhile["messages"][-1]["id"] == said.json()["message_id"]
    assert meanwhile["unanswered"] == []


@pytest.mark.parametrize(
    "name", ["team/2026/a", "a/history", "x/messages/y", "x/messages/y/messages/z", "100%", "a?b#c", "zażółć", "../x"]
)
async def test_whatever_its_id_a_conversation_can_be_talked_in_read_listened_to_and_erased(
    client: httpx.AsyncClient, name: str
) -> None:
    path = f"/conversations/{quote(name, safe='')}"
    assert (await client.post("/conversations", json={"conversation_id": name})).status_code == 201
    said = await client.post(f"{path}/messages", json={"content": "hello"})
    found = await client.get(f"{path}/history")
    gone = await client.delete(f"{path}/messages/{said.json()['message_id']}")
    erased = await client.request("DELETE", path)

    assert (said.status_code, found.json()["conversation_id"], gone.status_code) == (202, name, 200)
    assert [message["content"] for message in found.json()["messages"]] == ["hello"]
    assert erased.status_code == 200
    assert is_problem(await client.get(f"{path}/history"), 404, "not_found")


async def test_an_encoded_slash_belongs_to_an_id_and_a_plain_one_may_end_it(client: httpx.AsyncClient) -> None:
    for name in ("x", "x/messages/y", "a/b"):
        assert (await client.post("/conversations", json={"conversation_id": name})).status_code == 201

    await client.delete("/conversations/x/messages/y")  # a message of x
    still_there = await client.get("/conversations/x%2fmessages%2Fy/history")
    await client.delete("/conversations/x%2fmessages%2Fy")
    gone, other, plain = [await client.get(f"/conversations/{id_}/history") for id_ in ("x%2Fmessages%2Fy", "x", "a/b")]

    assert still_there.json()["conversation_id"] == "x/messages/y"
    assert is_problem(gone, 404, "not_found")
    assert (other.status_code, plain.json()["conversation_id"]) == (200, "a/b")


@pytest.mark.parametrize("name", ["a%00b", "a%2Fb%00c", "%2F%00"])
async def test_the_mark_itself_is_no_slash(client: httpx.AsyncClient, name: str) -> None:
    await client.post("/conversations", json={"conversation_id": "a/b"})

    assert is_problem(await client.get(f"/conversations/{name}/history"), 422, "invalid_scope", "conversation")


async def test_an_empty_conversation_id_is_none(client: httpx.AsyncClient) -> None:
    """Clients fill what they do not know with an empty string."""
    begun = await client.post("/conversations", json={"conversation_id": ""})
    assert begun.status_code == 201, begun.text
    name = begun.json()["conversation_id"]
    assert uuid.UUID(name)
    scope = {"user": "default"}
    said = {
        "scope": scope | {"conversation": name},
        "events": [{"kind": "UserMessage", "text": "I am allergic to peanuts"}],
    }
    assert (await client.post("/v1/memory/append", json=said)).status_code == 200
    found = await client.post("/v1/memory/recall", json={"scope": scope, "query": "peanuts", "conversation": ""})
    assert (found.status_code, len(found.json()["hits"])) == (200, 1)
    erased = await client.post("/v1/memory/erase", json={"scope": scope | {"conversation": ""}})
    assert erased.status_code == 422, "it would reach all of the user's"
