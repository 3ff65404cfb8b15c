"""`threadkeep mcp` with a real client of the official SDK, of today's protocol and of older ones."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
from mcp.client.client import Client

from tests.mcp.answers import TALK, connected, told
from tests.mcp.conftest import Connect
from tests.mcp.serving import over_http, served
from tests.mcp.stdio import stdio_transport
from threadkeep import Scope, open_memory
from threadkeep.compat.chat_service import SessionStore
from threadkeep.scope import DEFAULT_USER
from threadkeep.settings import Settings

SHOP = Path(__file__).parents[2] / "examples" / "pc_shop"


async def test_a_follow_up_knows_what_it_is(connect: Connect, url: str) -> None:
    steps: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, message))

    async with connect("--url", url, "--user", "ann") as client:
        first = told(
            await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=TALK, progress_callback=progress)
        )
        second = told(await client.call_tool("retrieve", {"query": "How does it work?"}, meta=TALK))
        alone = told(await client.call_tool("retrieve", {"query": "What is RAG?", "topK": 1}))
        history = told(await client.call_tool("history", {}, meta=TALK))
    assert first.keys() == {"success", "query", "contexts", "metrics", "cached"}
    assert (first["success"], first["query"], first["metrics"]["queryCount"]) == (True, "What is RAG?", 1)
    assert first["metrics"]["conversationId"] == TALK["vscode.conversationId"]
    assert first["metrics"]["requestId"] == "f8970589"
    assert (second["metrics"]["queryCount"], second["metrics"]["enriched"]) == (2, True)
    assert second["contexts"][0]["documentId"] == "how.md"
    assert len(alone["contexts"]) == 1
    assert alone["metrics"]["conversationId"] is None
    assert [one["query"] for one in history["queries"]] == ["What is RAG?", "How does it work?"]
    assert steps[0] == (1, "loadHistory")
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


async def test_a_client_of_an_older_protocol_finds_the_conversation_again(
    connect: Connect, url: str, tmp_path: Path
) -> None:
    async with connected(url, DEFAULT_USER) as client:
        told(await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=TALK))
    async with connect("--url", url, mode="legacy") as client:
        answer = told(await client.call_tool("retrieve", {"query": "canary: ann@example.com"}, meta=TALK))
        await client.call_tool("retrieve", {"query": "canary", "topK": 99}, meta=TALK)
    assert answer["metrics"]["queryCount"] == 2
    log = read(tmp_path / "server.log")
    assert TALK["vscode.conversationId"] in log
    assert "f8970589" in log
    assert "canary" not in log, "ids, never what was asked"
    assert "example.com" not in log


async def test_the_caller_without_credentials_is_one_user_on_every_surface(connect: Connect, url: str) -> None:
    async with connect("--url", url) as client:
        told(await client.call_tool("remember", {"text": "By an MCP client", "conversation": "stdio"}))
    async with open_memory(url) as memory:
        document = {"createdAt": "2026-11-19T05:00:00Z", "messages": [{"role": "user", "content": "By an application"}]}
        await SessionStore(memory).set("store", document)
    talk = ["chat", "--url", url, "--assistant", str(SHOP), "--conversation", "terminal", "--json"]
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "threadkeep.cli", *talk, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    await asyncio.wait_for(program.communicate("Xin chào\n".encode()), 60)
    async with served(Settings(DATABASE_URL=url)) as service, httpx.AsyncClient(trust_env=False) as http:  # type: ignore[call-arg]
        async with over_http(service, {}) as client:
            told(await client.call_tool("remember", {"text": "By an MCP client", "conversation": "mcp over http"}))
            resources = (await client.list_resources()).resources
        await http.post(f"{service}/conversations", json={"conversation_id": "http"})
        await http.post(f"{service}/conversations/http/messages", json={"content": "By a program"})
        begun = await http.post(f"{service}/console/conversations", follow_redirects=True)
        said = await http.post(f"{begun.url}/messages", data={"content": "By somebody in a browser"})
        assert said.status_code == 303
        asked = {"query": "What is RAG?", "mode": "retrieval_only"}
        await http.post(f"{service}/retrieval/query", json=asked, headers={"x-conversation-id": "documents"})
        listed = (await http.get(f"{service}/conversations")).json()["items"]
        whose = (await http.get(f"{service}/v1/memory/conversations", params={"user": DEFAULT_USER})).json()["items"]
    console = begun.url.path.rpartition("/")[2]
    before = {"stdio", "store", "terminal", "mcp over http"}
    assert {one.name for one in resources} == before
    assert {one["conversation"] for one in listed} == before | {"http", console, "documents"}
    assert listed == whose
    async with connect("--url", url) as client:
        assert {one.name for one in (await client.list_resources()).resources} == before | {
            "http",
            console,
            "documents",
        }


async def test_half_a_line_and_a_broken_one_do_not_end_the_server(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "threadkeep.cli", "mcp", "--url", f"sqlite:///{tmp_path}/half.db"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe)
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    call["params"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}  # type: ignore[assignment]
    said = b'{"jsonrpc": "2.0", "id": \n' + b"\xff\xfe not json\n" + json.dumps(call).encode() + b'\n{"jsonrpc": "2.'
    out, log = await asyncio.wait_for(process.communicate(said), 60)
    answers = [json.loads(line) for line in out.splitlines()]
    assert any(answer.get("id") == 1 and "result" in answer for answer in answers)
    assert process.returncode == 0
    assert b"Traceback" not in log


async def test_half_a_character_is_answered_under_its_own_id_and_named(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "threadkeep.cli", "mcp", "--url", f"sqlite:///{tmp_path}/half.db"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe)
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    half = "half an emoji \ud83d"
    said: list[tuple[str, dict[str, Any]]] = [
        ("initialize", begin),
        ("tools/call", {"name": "recall", "arguments": {"query": half}}),
        ("tools/call", {"name": "remember", "arguments": {"text": "whole \ud83d\ude00", "key": half}}),
        ("tools/call", {"name": half, "arguments": {}, "_meta": {"progressToken": half}}),
        ("resources/read", {"uri": half}),
        (half, {}),
        ("tools/call", {"name": "recall", "arguments": half}),
        ("ping", {}),
    ]
    assert process.stdin is not None
    assert process.stdout is not None
    answers: list[dict[str, Any]] = []
    for number, (method, params) in enumerate(said):
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        process.stdin.write(f"{line}\n".encode())
        answers.append(json.loads(await asyncio.wait_for(process.stdout.readline(), 60)))
        if number == 0:
            process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    _, log = await asyncio.wait_for(process.communicate(b""), 60)
    assert [one["id"] for one in answers] == [*range(len(said))]
    errors = [json.loads(answers[number]["result"]["content"][0]["text"]) for number in (1, 2, 3)]
    assert [error["field"] for error in errors] == ["query", "key", "name"]
    assert all("error" in answers[number] for number in (4, 5, 6))
    assert answers[7]["result"] == {}
    assert b"Traceback" not in log


def read(path: Path) -> str:
    return path.read_text("utf-8")


async def many_servers(url: str, folder: Path, servers: int, notes: int) -> int:
    """Each its own process on the one file, all at once; how many calls failed."""

    async def one(number: int) -> int:
        with open_log(folder / f"server{number}.log") as log:
            async with Client(stdio_transport("--url", url, "--user", "ann", log=log)) as client:
                results = [
                    await client.call_tool(
                        "remember", {"text": f"note {number}-{note}", "conversation": f"c{number % 3}"}
                    )
                    for note in range(notes)
                ]
        return sum(bool(result.is_error) for result in results)

    return sum(await asyncio.gather(*(one(number) for number in range(servers))))


def open_log(path: Path) -> Any:
    return path.open("w")


async def test_servers_on_one_file_lose_no_note(tmp_path: Path) -> None:
    """Three of fifteen notes each; with `CHAOS=full` twenty of a hundred."""
    url = f"sqlite:///{tmp_path}/many.db"
    servers, notes = (20, 100) if os.environ.get("CHAOS") == "full" else (3, 15)
    assert await many_servers(url, tmp_path, servers, notes) == 0
    async with open_memory(url) as memory:
        assert (await memory.stats(Scope("default", "ann"))).messages == servers * notes
        for shared in range(3):
            talk, said = Scope("default", "ann", f"c{shared}"), notes * len(range(shared, servers, 3))
            assert [one.seq for one in (await memory.history(talk, 1_000)).messages] == list(range(1, said + 1))
