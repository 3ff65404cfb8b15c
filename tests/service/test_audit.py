"""The log as an auditor reads it: who reached whose memory, by which verb, how that ended, in which request."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mcp.serving import bearer, over_http, served, settings_for
from tests.mcp.stdio import stdio_transport
from tests.service.conftest import client_of
from threadkeep.cli.output import JsonLines
from threadkeep.compose.service import open_keys
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.identity.audit import reaching, trail_of
from threadkeep.policy.logs import logged_id
from threadkeep.ports.clock import system_clock
from threadkeep.scope import Scope

SECRET = "my locker is behind the blue door"
ACCESS = {"who", "caller_tenant", "caller_user", "tenant", "user", "outcome", "request_id", "conversation_id"}


class Lines(logging.Handler):
    """What a service would write, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("threadkeep"):
            self.written.append(self.format(record))

    def of(self, **wanted: Any) -> list[dict[str, Any]]:
        told = [json.loads(line) for line in self.written]
        return [line for line in told if wanted.items() <= line.items()]


@pytest.fixture
def log() -> Iterator[Lines]:
    lines, root, ours = Lines(), logging.getLogger(), logging.getLogger("threadkeep")
    level = ours.level
    root.addHandler(lines)
    ours.setLevel(logging.INFO)
    yield lines
    ours.setLevel(level)
    root.removeHandler(lines)


@pytest.fixture
async def strangers(tmp_path: Path) -> Any:
    async with client_of(create_app(settings_for(f"sqlite:///{tmp_path}/audit.db"))) as client:
        yield client


def place(user: str = "ann") -> dict[str, str]:
    return {"tenant": "default", "user": user, "conversation": "c1"}


async def say(client: httpx.AsyncClient, as_user: str | None, about: str, request: str) -> int:
    headers = {"X-Request-ID": request} | (bearer(as_user) if as_user else {})
    body = {"scope": place(about), "events": [{"kind": "UserMessage", "text": SECRET}]}
    return (await client.post("/v1/memory/append", json=body, headers=headers)).status_code


async def test_each_request_to_memory_tells_who_whose_what_and_how_it_ended(
    strangers: httpx.AsyncClient, log: Lines
) -> None:
    assert await say(strangers, "ann", "ann", "r-own") == 200
    assert await say(strangers, "bob", "ann", "r-foreign") == 404
    assert await say(strangers, None, "ann", "r-nobody") == 401
    own, foreign, nobody = (log.of(event="request", request_id=one)[0] for one in ("r-own", "r-foreign", "r-nobody"))
    assert own.items() >= {"who": "jwt:default:ann", "user": "ann", "outcome": "ok", "conversation_id": "c1"}.items()
    assert own.items() >= {"method": "POST", "route": "/v1/memory/append", "tenant": "default"}.items()
    assert foreign.items() >= {"who": "jwt:default:bob", "user": "ann", "outcome": "denied"}.items()
    assert nobody.items() >= {"who": None, "outcome": "denied"}.items()
    assert all(line.keys() >= ACCESS for line in (own, foreign, nobody))
    assert SECRET not in "".join(log.written)


async def test_what_reaches_nobodys_memory_is_no_access(strangers: httpx.AsyncClient, log: Lines) -> None:
    await strangers.get("/healthz", headers={"X-Request-ID": "r-probe"})
    (line,) = log.of(request_id="r-probe")
    assert "who" not in line


async def test_every_line_of_a_request_has_its_ids(strangers: httpx.AsyncClient, log: Lines) -> None:
    headers = bearer("ann") | {"X-Request-ID": "r-asked", "X-Conversation-ID": "talk-7"}
    answer = await strangers.post("/retrieval/query", json={"query": SECRET}, headers=headers)
    assert answer.status_code == 200
    lines = log.of(request_id="r-asked")
    assert {line.get("logger", "threadkeep.http") for line in lines} == {"threadkeep.retrieval", "threadkeep.http"}
    assert {line["conversation_id"] for line in lines} == {"talk-7"}
    assert SECRET not in "".join(log.written)


@pytest.mark.parametrize("user", ["ann@example.com", "+48601234567", "a" * 200, "line\u2028break"])
def test_an_id_that_would_be_masked_as_text_is_told_by_a_digest(user: str, log: Lines) -> None:
    with trail_of("r1", "http"):
        reaching(Scope("shop", "u1", user))
        logging.getLogger("threadkeep.retrieval").warning("something happened")
    (line,) = log.of(message="something happened")
    assert (line["request_id"], line["conversation_id"]) == ("r1", logged_id(user))
    assert user not in log.written[0]
    assert logged_id(user).startswith("#")
    assert logged_id(user) != logged_id(user + "x")


@pytest.mark.parametrize("plain", ["u42", "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "Nguyễn", "jwt:default:ann"])
def test_any_other_id_stands_in_the_log_as_it_is(plain: str) -> None:
    assert logged_id(plain) == plain


async def test_each_call_of_a_tool_is_told_over_http(tmp_path: Path, log: Lines) -> None:
    meta = {"vscode.conversationId": "talk-9", "vscode.requestId": "r-tool"}
    named = meta | {"vscode.requestId": "ann@example.com"}
    async with (
        served(settings_for(f"sqlite:///{tmp_path}/audit.db")) as address,
        over_http(address, bearer("ann")) as client,
    ):
        await client.call_tool("remember", {"text": SECRET}, meta=meta)
        await client.call_tool("recall", {"query": SECRET}, meta=meta)
        await client.call_tool("history", {"conversation": "other"}, meta=meta)
        await client.call_tool("forget", {}, meta=named)
        await client.list_resources()
        with pytest.raises(Exception, match="no such conversation"):
            await client.read_resource("threadkeep://conversations/nowhere")
    told = {line["verb"]: line for line in log.of(event="tool")}
    ann = {"who": "jwt:default:ann", "tenant": "default", "user": "ann"}
    assert told["remember"].items() >= (ann | {"outcome": "ok", "conversation_id": "talk-9"}).items()
    assert told["recall"].items() >= (ann | {"outcome": "ok", "request_id": "r-tool"}).items()
    assert told["history"].items() >= (ann | {"outcome": "ok", "conversation_id": "other"}).items()
    assert told["forget"].items() >= (ann | {"outcome": "failed", "error": "invalid_input"}).items()
    assert told["forget"]["request_id"] == logged_id("ann@example.com")
    assert told["resources/list"].items() >= (ann | {"outcome": "ok"}).items()
    assert told["resources/read"].items() >= (ann | {"outcome": "denied", "conversation_id": "nowhere"}).items()
    assert SECRET not in "".join(log.written)


@pytest.mark.parametrize("surface", ["http", "mcp"])
async def test_who_acts_for_a_user_is_named_beside_them(tmp_path: Path, log: Lines, surface: str) -> None:
    url, secret = f"sqlite:///{tmp_path}/audit.db", "k" * 32
    settings = settings_for(url, THREADKEEP_API_KEY_SECRET=secret)
    key, kept = new_key(secret, system_clock(), ("default", "boss"), role="ADMIN")
    async with open_keys(url, settings) as keys:
        await keys.add(kept)
    headers = {"X-API-Key": key, "X-User-ID": "ann"}
    async with served(settings) as address:
        if surface == "http":
            async with httpx.AsyncClient(base_url=address, headers=headers, trust_env=False) as client:
                assert (await client.get("/conversations")).status_code == 200
        else:
            async with over_http(address, headers) as client:
                await client.call_tool("history", {})
    both = {"who": f"key:{kept.prefix}", "caller_tenant": "default", "caller_user": "boss", "user": "ann"}
    assert log.of(event="request" if surface == "http" else "tool", outcome="ok", **both)
    assert not [line for line in log.of(outcome="ok") if line["caller_user"] != "boss"]


async def test_each_call_of_a_tool_is_told_on_stdio(tmp_path: Path) -> None:
    from mcp.client.client import Client

    with (tmp_path / "log").open("w") as log:
        arguments = ("--url", f"sqlite:///{tmp_path}/stdio.db", "--user", "ann")
        async with Client(stdio_transport(*arguments, log=log)) as client:
            await client.call_tool("remember", {"text": SECRET}, meta={"vscode.conversationId": "talk-3"})
    lines = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    (line,) = [line for line in lines if line["event"] == "tool"]
    assert line.items() >= {"who": "stdio", "user": "ann", "verb": "remember", "outcome": "ok"}.items()
    assert line["conversation_id"] == "talk-3"
    assert SECRET not in (tmp_path / "log").read_text("utf-8")
