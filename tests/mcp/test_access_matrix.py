"""Six identities, every tool and every route that reaches somebody's memory or documents, four kinds of documents.

Tools come from the server's own list and routes from the OpenAPI document: one that has no row here fails.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.mcp.answers import told
from tests.mcp.library import SETTINGS, document, fill, found_in
from tests.mcp.serving import bearer, over_http, served, settings_for
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.agent.retrieval_turn import RetrievalRequest
from threadkeep.compose.retrieval import open_retrieval
from threadkeep.compose.service import open_keys
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.mcp.tools import TOOLS
from threadkeep.ports.clock import system_clock
from threadkeep.ports.knowledge import Access
from threadkeep.settings import Settings

WHO: dict[str, dict[str, Any]] = {
    "ann": {"user": "ann"},
    "bob": {"user": "bob"},
    "eve": {"user": "eve"},
    "hotel": {"user": "ann", "tenant": "hotel"},
    "admin": {"user": "boss", "role": "ADMIN"},
    "root": {"user": "root", "role": "SUPER_ADMIN"},
}
EVERYBODY = (*WHO, "nobody")  # with no credential at all
KINDS = {
    "public": document("public.md", "The comet garden opens in May for all visitors."),
    "anns": document("anns.md", "The comet garden of Ann is a secret orchard.", "private", owner="ann"),
    "bobs": document("bobs.md", "The comet garden of Bob is a hidden pond.", "private", owner="bob"),
    "shared": document("shared.md", "The comet garden plan is for two.", "shared", owner="ann", readers=("bob",)),
}
READS: dict[str, set[str]] = {
    "ann": {"public", "anns", "shared"},
    "bob": {"public", "bobs", "shared"},
    "eve": {"public"},
    "hotel": set(),  # another tenant
    "admin": {"public"},  # manages documents, and reads no private ones by that
    "root": {"public", "anns", "bobs", "shared"},
}
QUESTION = "comet garden"
IDENTITIES = 1_000 if os.environ.get("CHAOS") == "full" else 200
TALK = {"vscode.conversationId": "anns-talk"}


@pytest.fixture
async def place(tmp_path: Any) -> AsyncIterator[str]:
    url = f"sqlite:///{tmp_path}/matrix.db"
    await fill(url, *KINDS.values())
    async with open_memory(url) as memory:
        await memory.append(Scope("default", "ann", "anns-talk"), [UserMessage("My comet is green", id="m1")])
    async with served(settings_for(url)) as address:
        yield address


def credential(name: str) -> dict[str, str]:
    return {} if name == "nobody" else bearer(**WHO[name])


def kinds_in(contexts: list[dict[str, Any]]) -> set[str]:
    return {kind for kind, one in KINDS.items() if one.document_id in {context["documentId"] for context in contexts}}


async def test_every_tool_shows_each_identity_its_own_and_nothing_else(place: str) -> None:
    rows = {"retrieve", "remember", "recall", "history", "forget"}
    assert {tool.name for tool in TOOLS} == rows, "a new tool needs a row here"
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(over_http(place, credential(name))) for name in WHO}
        for name, client in clients.items():
            answer = told(await client.call_tool("retrieve", {"query": QUESTION, "topK": 50}, meta=TALK))
            assert kinds_in(answer["contexts"]) == READS[name], name
        for name, client in clients.items():
            mine = name == "ann"
            hits = told(await client.call_tool("recall", {"query": "green comet"}))["hits"]
            shown = told(await client.call_tool("history", {"conversation": "anns-talk"}))
            assert ([hit["message_id"] for hit in hits], len(shown["messages"])) == (
                (["m1"], 1) if mine else ([], 0)
            ), name
            assert len(shown["queries"]) == 1, f"{name}: each has asked once, in a talk of their own"
        for name in ("bob", "eve", "hotel", "admin", "root"):
            await clients[name].call_tool("forget", {"messageId": "m1", "conversation": "anns-talk"})
            told(await clients[name].call_tool("remember", {"text": "mine", "conversation": "anns-talk"}))
        kept = told(await clients["ann"].call_tool("history", {"conversation": "anns-talk"}))
        assert [message["id"] for message in kept["messages"]] == ["m1"]
        await clients["ann"].call_tool("forget", {"messageId": "m1", "conversation": "anns-talk"})
        assert told(await clients["ann"].call_tool("history", {"conversation": "anns-talk"}))["messages"] == []


IN_ANNS_PLACE: dict[str, set[str]] = {
    "ann": READS["ann"],
    "admin": {"public"},  # acts for her, and does not read for her
    "root": READS["ann"],  # acts for her, so reads no more than she may
    "front-end": READS["ann"],  # a service, which speaks for its users
}


async def test_in_anothers_place_an_admin_reads_what_is_public_and_a_service_what_they_may(tmp_path: Any) -> None:
    url, secret = f"sqlite:///{tmp_path}/places.db", "k" * 32
    await fill(url, *KINDS.values())
    key, kept = new_key(secret, system_clock(), ("default", None))
    async with open_keys(url, SETTINGS) as keys:
        await keys.add(kept)
    async with (
        served(settings_for(url, THREADKEEP_API_KEY_SECRET=secret)) as address,
        httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client,
    ):
        for name, expected_kinds in IN_ANNS_PLACE.items():
            who = {"X-API-Key": key} if name == "front-end" else credential(name)
            for _ in range(2):  # the second time by what is remembered of the talk
                answer = await client.post(
                    "/retrieval/query", json={"query": QUESTION, "topK": 50}, headers=who | AS_ANN
                )
                assert kinds_in(answer.json()["contexts"]) == expected_kinds, name


async def test_what_is_stored_of_a_talk_is_shown_as_far_as_it_may_be_read(place: str) -> None:
    for name in WHO:
        async with over_http(place, credential(name)) as client:
            await client.call_tool("retrieve", {"query": QUESTION, "topK": 50}, meta=TALK)
            if not READS[name]:
                continue
            (content,) = (await client.read_resource("threadkeep://conversations/anns-talk")).contents
            stored: Any = json.loads(content.text)["retrieval"]["retrievedContexts"]  # type: ignore[union-attr]
            assert kinds_in(stored) == READS[name], name


DOCUMENT = create_app(Settings()).openapi()
OPEN_TO_ALL = {"/healthz", "/readyz", "/agent/health"}
OPERATIONS = sorted(
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path not in OPEN_TO_ALL
)
SCOPE = {"tenant": "default", "user": "ann", "conversation": "anns-talk"}
# What to send so that it is about Ann's memory; a route that is not here fails.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/memory/append"): {"scope": SCOPE, "events": []},
    ("POST", "/v1/memory/recall"): {"scope": SCOPE, "query": "comet"},
    ("POST", "/v1/memory/erase"): {"scope": SCOPE, "message_id": "m9"},
    ("POST", "/v1/memory/forget"): {"scope": SCOPE, "text": "a text that nobody says"},
    ("POST", "/conversations"): {"conversation_id": "another"},
    ("POST", "/conversations/{conversation_id}/messages"): {"content": "hello"},
    ("POST", "/agent/chat"): {"sessionId": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "message": "hello"},
    ("POST", "/api/chat"): {"conversation_id": "anns-talk", "user_id": "ann", "user_message": "hello"},
    ("POST", "/retrieval/query"): {"query": QUESTION},
    ("POST", "/query"): {"query": QUESTION},
    ("POST", "/admin/index"): {"datasource": "none"},
}
AS_ANN = {"X-Tenant-ID": "default", "X-User-ID": "ann", "X-Conversation-ID": "anns-talk"}
MAY_ACT_FOR_ANN = {"ann", "admin", "root"}


async def asked(client: httpx.AsyncClient, method: str, path: str, headers: dict[str, str]) -> int:
    place = re.sub(r"\{conversation_id\}", "anns-talk", path).replace("{message_id}", "m9").replace("{job_id}", "j1")
    described = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    params = {one["name"]: SCOPE[one["name"]] for one in described if one["in"] == "query" and one["name"] in SCOPE}
    body = {"json": BODIES[method, path]} if "requestBody" in DOCUMENT["paths"][path][method.lower()] else {}
    async with client.stream(method, place, params=params, headers=headers, **body) as answer:
        return answer.status_code


def expected(name: str, path: str, status: int) -> bool:
    """Whether this is what this identity is to get, asking for Ann's place."""
    if name == "nobody":
        return status == 401
    if path == "/metrics":  # of the whole store, so for none but those who may ask for all of it
        return status == (200 if name == "root" else 403)
    if path.startswith("/admin/"):  # of one's own tenant, whoever is asked for
        return status in ((200, 202, 404) if WHO[name].get("role") else (403, 404))
    return status not in (401, 403, 404, 500) if name in MAY_ACT_FOR_ANN else status == 404


async def test_every_route_is_for_those_who_may_reach_the_place_it_is_about(place: str) -> None:
    assert len(OPERATIONS) >= 18
    missing = [
        one for one in OPERATIONS if one not in BODIES and "requestBody" in DOCUMENT["paths"][one[1]][one[0].lower()]
    ]
    assert missing == [], "a new route needs a row here"
    wrong: list[tuple[str, str, str, int]] = []
    async with httpx.AsyncClient(base_url=place, timeout=30, trust_env=False) as client:
        for method, path in sorted(OPERATIONS, key=lambda one: one[0] == "DELETE"):
            for name in EVERYBODY:
                status = await asked(client, method, path, credential(name) | AS_ANN)
                gone = method == "DELETE" and status == 404 and name in MAY_ACT_FOR_ANN
                if not gone and not expected(name, path, status):
                    wrong.append((name, method, path, status))
    assert wrong == []


async def test_no_cached_answer_crosses_an_access_boundary(tmp_path: Any) -> None:
    """Random readers of a dozen documents with random readers ask the same question, some of them twice."""
    chance = random.Random(8)
    users = [f"user{number}" for number in range(IDENTITIES)]
    documents = [
        document(f"d{number}.md", f"The comet garden number {number} is closed.", "shared", owner=chance.choice(users),
                 readers=tuple(chance.sample(users, IDENTITIES * 2 // 5)))
        for number in range(12)
    ]  # fmt: skip
    url = f"sqlite:///{tmp_path}/cache.db"
    await fill(url, *documents, document("open.md", "The comet garden is open."))
    readers = {one.document_id: {one.owner, *one.readers} for one in documents}
    leaks = hits = 0
    async with open_retrieval(url, SETTINGS) as retrieval:
        for user in users:
            request = RetrievalRequest(Scope("default", user), Access("default", user), "comet garden closed", 20)
            for _ in range(1 + (chance.random() < 0.1)):
                result = await retrieval.ask(request)
                hits += result.cached
                allowed = {"open.md"} | {name for name, may in readers.items() if user in may}
                leaks += not set(found_in(result)) <= allowed
                assert set(found_in(result)) == allowed
    assert leaks == 0
    assert hits > IDENTITIES // 20, "the cache was at work"
