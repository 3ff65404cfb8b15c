"""MCP and `/retrieval/query` over HTTP: who calls is known by a token, and everything else is turned away."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mcp.answers import TALK, failure, told
from tests.mcp.serving import bearer, over_http, served, settings_for, token
from tests.mcp.stdio import stdio_transport
from tests.service.conftest import client_of
from tests.service.talking import is_problem
from threadkeep.compose.service import open_keys
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.mcp.tools import TOOLS
from threadkeep.models.tokens import Tokenizer
from threadkeep.ports.clock import system_clock
from threadkeep.scope import Scope
from threadkeep.settings import Settings

QUERY = "/retrieval/query"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def test_the_two_turns_over_the_route(url: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        sent = bearer() | {"x-conversation-id": "c-1", "x-request-id": "r-1"}
        body = {"query": "What is RAG?", "mode": "retrieval_only", "topK": 10, "useCache": True}
        first = (await client.post(QUERY, json=body, headers=sent)).json()
        second = (await client.post(QUERY, json=body | {"query": "How does it work?"}, headers=sent)).json()
        alone = (await client.post(QUERY, json={"query": "How does it work?"}, headers=bearer())).json()
    assert first.keys() == {"success", "query", "contexts", "metrics", "cached"}
    assert (first["metrics"]["queryCount"], first["metrics"]["requestId"]) == (1, "r-1")
    assert (second["metrics"]["queryCount"], second["metrics"]["enriched"]) == (2, True)
    assert second["query"] == "How does it work?"
    assert second["contexts"][0]["documentId"] == "how.md"
    assert alone["metrics"]["conversationId"] is None
    assert alone["metrics"]["enriched"] is False


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"topK": 0}, 422, "topK"),
        ({"topK": 51}, 422, "topK"),
        ({"topK": "ten"}, 422, "topK"),
        ({"topK": 5.5}, 422, "topK"),
        ({"query": "a\u0000b"}, 422, "query"),
        ({"query": ""}, 422, "query"),
        ({"query": " \n"}, 422, "query"),
        ({"query": "x" * 100_000}, 413, "query"),
        ({"mode": "generate"}, 422, "mode"),
    ],
    ids=["topK 0", "topK 51", "topK ten", "topK 5.5", "NUL", "empty", "blank", "100 kB", "mode"],
)
async def test_bad_input_to_the_route_names_its_field(url: str, change: Any, status: int, field: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        answer = await client.post(QUERY, json={"query": "What is RAG?"} | change, headers=bearer())
        assert (answer.status_code, answer.json()["field"]) == (status, field)
        assert (await client.post(QUERY, json={"query": "What is RAG?"}, headers=bearer())).status_code == 200


BOTH_ROUTES = pytest.mark.parametrize("route", [QUERY, "/query"])
STEPS = {"analysis", "accessFilter", "retrieval", "fusion", "reranking", "enrichment"}


@BOTH_ROUTES
async def test_an_answer_has_what_the_existing_gateway_returns(url: str, route: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        first, again = [
            (
                await client.post(route, json={"query": "How does RAG combine search and a model?"}, headers=bearer())
            ).json()
            for _ in range(2)
        ]
    assert (first["success"], first["cached"], again["cached"]) == (True, False, True)
    assert [one["metrics"]["cacheHit"] for one in (first, again)] == [False, True]
    for answer in (first, again):
        best = next(one for one in answer["contexts"] if one["documentId"] == "rag.md")
        assert (best["title"], best["source"], best["parentChunkId"]) == ("rag.md", "rag.md", "rag.md#part_0")
        assert best["tokens"] == Tokenizer("cl100k_base").count(best["content"])
        assert best["metadata"] == {
            "documentTitle": "rag.md",
            "documentType": "md",
            "sectionPath": ["rag.md"],
            "datasourceId": "docs",
        }
        assert [one["chunkId"] for one in best["sources"]["childChunks"]] == ["rag.md#chunk_0"]
        scores = [one["score"] for one in answer["contexts"]]
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert answer["metrics"]["parentChunkCount"] == len(answer["contexts"])
        assert answer["metrics"]["totalDuration"] >= sum(answer["metrics"][f"{step}Duration"] for step in STEPS)
    assert again["metrics"]["retrievalDuration"] == 0
    assert again["metrics"]["cacheHitLatency"] > 0


@BOTH_ROUTES
async def test_fields_that_are_not_known_are_ignored_and_name_nobody(url: str, route: str) -> None:
    asked = {"query": "director salary", "userId": "ann", "user": "ann", "tenant": "other", "filters": {"a": [1]}}
    async with client_of(create_app(settings_for(url))) as client:
        eve = await client.post(route, json=asked, headers=bearer("eve"))
        ann = await client.post(route, json=asked | {"userId": "eve"}, headers=bearer("ann"))
    assert (eve.status_code, ann.status_code) == (200, 200)
    assert "salary.md" not in [one["documentId"] for one in eve.json()["contexts"]]
    assert ann.json()["contexts"][0]["documentId"] == "salary.md"


@BOTH_ROUTES
async def test_an_error_has_a_sentence_and_a_code(url: str, route: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        blank = await client.post(route, json={"query": " "}, headers=bearer())
        stranger = await client.post(route, json={"query": "What is RAG?"})
    for answer, status, code in ((blank, 422, "invalid_input"), (stranger, 401, "unauthenticated")):
        told = answer.json()
        assert (answer.status_code, told["code"], told["success"]) == (status, code, False)
        assert told["error"] == told["message"] == told["detail"]
        assert isinstance(told["error"], str)
        assert " " in told["error"]


async def test_a_forged_conversation_header_is_told(url: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        for forged in (b"x" * 300, b"\xff\xfe"):
            headers = [(b"x-conversation-id", forged), *((k.encode(), v.encode()) for k, v in bearer().items())]
            answer = await client.post(QUERY, json={"query": "x"}, headers=headers)
            assert answer.status_code == 422, answer.text


async def test_an_empty_conversation_header_is_none(url: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        answer = await client.post(QUERY, json={"query": "x"}, headers=bearer() | {"X-Conversation-ID": ""})
        assert (answer.status_code, answer.json()["metrics"]["conversationId"]) == (200, None)


REFUSED = {
    "none": {},
    "expired": bearer(seconds=-600),
    "another audience": bearer(aud="https://else.example.com"),
    "no audience": {"Authorization": "Bearer " + token(aud=[])},
    "forged": {"Authorization": "Bearer " + token()[:-6] + "AAAAAA"},
    "not a token": {"Authorization": "Bearer x"},
}


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED.keys())
async def test_a_token_that_does_not_hold_is_refused_on_both_doors(url: str, headers: dict[str, str]) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        asked = await client.post(QUERY, json={"query": "What is RAG?"}, headers=headers)
        greeted = await client.post("/mcp", json=HELLO, headers=headers | ACCEPT)
    for answer in (asked, greeted):
        assert is_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_another_host_or_origin_is_turned_away_whoever_asks(url: str) -> None:
    async with client_of(create_app(settings_for(url, THREADKEEP_MCP_HOSTS="memory.example.com"))) as client:

        async def greeted(**headers: str) -> int:
            return (await client.post("/mcp", json=HELLO, headers=bearer() | ACCEPT | headers)).status_code

        assert await greeted() == 200
        assert await greeted(host="memory.example.com") == 200
        assert await greeted(host="evil.example.com") == 421
        assert await greeted(host="127.0.0.1.evil.example.com") == 421
        assert await greeted(origin="https://evil.example.com") == 403
        assert await greeted(origin="http://localhost:6274") == 200


async def test_without_authentication_only_this_machine_is_served(url: str) -> None:
    async with client_of(create_app(Settings(DATABASE_URL=url))) as client:
        here = await client.post("/mcp", json=HELLO, headers=ACCEPT)
        there = await client.post("/mcp", json=HELLO, headers=ACCEPT | {"host": "evil.example.com"})
    assert (here.status_code, there.status_code) == (200, 421)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_caller_is_whoever_the_token_names_whatever_the_client_says(url: str, mode: str) -> None:
    claimed = TALK | {"userId": "ann", "user": "ann", "tenant": "default"}
    async with served(settings_for(url)) as address:
        async with over_http(address, bearer("ann"), mode) as ann:
            first = told(await ann.call_tool("retrieve", {"query": "director salary"}, meta=TALK))
            second = told(await ann.call_tool("retrieve", {"query": "How much is it?"}, meta=TALK))
            told(await ann.call_tool("remember", {"text": "The key is under the mat"}, meta=TALK))
        async with over_http(address, bearer("eve"), mode) as eve:
            stolen = told(await eve.call_tool("retrieve", {"query": "director salary"}, meta=claimed))
            seen = told(await eve.call_tool("history", {}, meta=claimed))
            listed = (await eve.list_resources()).resources
    assert first["contexts"][0]["documentId"] == "salary.md"
    assert (second["metrics"]["queryCount"], second["metrics"]["enriched"]) == (2, True)
    assert "salary.md" not in json.dumps(stolen["contexts"])
    assert stolen["metrics"]["queryCount"] == 1
    assert seen["messages"] == []
    (own,) = listed  # of her own one question
    assert "1 questions" in (own.description or "")


async def test_a_session_is_its_openers_alone(url: str) -> None:
    async with client_of(create_app(settings_for(url))) as client:
        opened = await client.post("/mcp", json=HELLO, headers=bearer("ann") | ACCEPT)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        mine = await client.post("/mcp", json=ping, headers=bearer("ann") | ACCEPT | session)
        theirs = await client.post("/mcp", json=ping, headers=bearer("eve") | ACCEPT | session)
    assert mine.status_code == 200
    assert theirs.status_code in (403, 404)


async def test_a_client_that_hangs_up_does_not_end_the_service(url: str) -> None:
    async with served(settings_for(url)) as address:
        host, port = address.removeprefix("http://").split(":")
        for cut in (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le", _half_a_request()):
            _, writing = await asyncio.open_connection(host, int(port))
            writing.write(cut)
            await writing.drain()
            writing.close()
            await writing.wait_closed()
        async with over_http(address, bearer()) as client:
            assert told(await client.call_tool("recall", {"query": "still there?"}))["hits"] == []


def _half_a_request() -> bytes:
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token()}\r\n"
    return (head + "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{").encode()


async def test_the_thin_front_forwards_with_its_token(url: str, tmp_path: Any) -> None:
    from mcp.client.client import Client

    async with served(settings_for(url)) as address:
        with _log(tmp_path) as log:
            transport = stdio_transport("--gateway", address, log=log, THREADKEEP_TOKEN=token("ann"))
            async with Client(transport) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                first = told(await client.call_tool("retrieve", {"query": "director salary"}, meta=TALK))
                second = told(await client.call_tool("retrieve", {"query": "How much is it?"}, meta=TALK))
                kept = told(await client.call_tool("remember", {"text": "I eat peanuts", "key": "k1"}, meta=TALK))
                hits = told(await client.call_tool("recall", {"query": "peanuts", "topK": 3}, meta=TALK))["hits"]
                shown = told(await client.call_tool("history", {}, meta=TALK))
                wrong = failure(await client.call_tool("forget", {"messageId": "nope", "conversation": "\x00"}))
                gone = told(await client.call_tool("forget", {"messageId": kept["kept"][0]}, meta=TALK))
        refused = await _forwarded(address, "nonsense")
    assert names == [tool.name for tool in TOOLS]
    assert [hit["message_id"] for hit in hits] == kept["kept"]
    assert (kept["conversation"], len(shown["messages"]), len(shown["queries"])) == (
        TALK["vscode.conversationId"],
        1,
        2,
    )
    assert (wrong["code"], wrong["field"]) == ("invalid_input", "conversation")
    assert gone["complete"] is True
    assert first["contexts"][0]["documentId"] == "salary.md"
    assert second["metrics"]["queryCount"] == 2
    assert second["metrics"]["requestId"] == TALK["vscode.requestId"]
    assert refused == "unauthenticated"


async def test_the_thin_front_sends_an_api_key(url: str, tmp_path: Any) -> None:
    from mcp.client.client import Client

    secret = "k" * 32
    key, kept = new_key(secret, system_clock(), ("default", "ann"))
    async with open_keys(url, Settings()) as keys:
        await keys.add(kept)
    async with served(settings_for(url, THREADKEEP_API_KEY_SECRET=secret)) as address:
        with _log(tmp_path) as log:
            transport = stdio_transport("--gateway", address, log=log, THREADKEEP_TOKEN=key)
            async with Client(transport) as client:
                found = told(await client.call_tool("retrieve", {"query": "director salary"}, meta=TALK))
                noted = told(await client.call_tool("remember", {"text": "I eat peanuts"}, meta=TALK))
    assert found["contexts"][0]["documentId"] == "salary.md"
    assert noted["kept"]
    assert key not in (tmp_path / "front.log").read_text()


async def _forwarded(address: str, credential: str) -> str:
    from threadkeep.errors import ThreadkeepError
    from threadkeep.identity.principal import Principal
    from threadkeep.mcp.calls import Call
    from threadkeep.mcp.gateway import open_gateway
    from threadkeep.mcp.schemas import RetrieveArguments

    async with open_gateway(address, credential) as gateway:
        try:
            await gateway.retrieve(Call(Principal("default", "x"), Scope("default", "x")), RetrieveArguments(query="x"))
        except ThreadkeepError as error:
            return error.code
    return ""


def _log(folder: Any) -> Any:
    return (folder / "front.log").open("w")


async def test_logs_of_the_service_hold_no_question(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with client_of(create_app(settings_for(url))) as client:
        sent = bearer() | {"x-conversation-id": "c-1"}
        await client.post(QUERY, json={"query": "canary ann@example.com"}, headers=sent)
        await client.post(QUERY, json={"query": "canary", "topK": 99}, headers=sent)
    assert "c-1" in caplog.text
    assert "canary" not in caplog.text
    assert "example.com" not in caplog.text


@pytest.mark.parametrize("clients", [8, 64] if os.environ.get("CHAOS") == "full" else [8])
async def test_many_clients_at_once_are_all_answered(url: str, clients: int) -> None:
    async def talk(client: httpx.AsyncClient, number: int) -> list[int]:
        sent = bearer() | {"x-conversation-id": f"c{number}"}
        answers = [await client.post(QUERY, json={"query": "What is RAG?"}, headers=sent) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        return [answer.json()["metrics"]["queryCount"] for answer in answers]

    async with client_of(create_app(settings_for(url))) as client:
        counts = await asyncio.gather(*(talk(client, number) for number in range(clients)))
    assert counts == [[1, 2]] * clients


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md").read_text("utf-8")


async def test_the_smoke_test_of_the_page_passes_on_a_running_service(url: str) -> None:
    body = re.findall(r"-d '(\{.*\})'", PAGE)[0]
    headers = bearer() | {"X-Conversation-ID": "c1", "Content-Type": "application/json"}
    async with served(settings_for(url)) as address, httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/readyz")).status_code == 200
        answers = [(await client.post(QUERY, content=body, headers=headers)).json() for _ in range(2)]
    assert [one["success"] for one in answers] == [True, True]
    assert [one["metrics"]["queryCount"] for one in answers] == [1, 2]


def test_the_runbook_says_what_to_do_about_everything_that_is_told() -> None:
    rows = PAGE.split("## Runbook")[1]
    for told_of in ("metrics.degraded", "metrics.doneWithout", "401", "421", "403", "stale_writer", "Smoke test"):
        assert told_of in rows
