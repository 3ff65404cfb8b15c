"""Who may call, and whose memory they reach. Every route of the document is asked, by everybody."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.talking import is_problem
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.compose.service import open_keys
from threadkeep.errors import InvalidSetting
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key, prefix_of
from threadkeep.identity.principal import Principal
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import Permission, Role
from threadkeep.settings import Settings

KEY_SECRET = "k" * 32
JWT_SECRET = "j" * 32
DOCUMENT = create_app(Settings()).openapi()
OPEN_TO_ALL = {"/healthz", "/readyz", "/agent/health"}
OPERATIONS = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path not in OPEN_TO_ALL
]
BODIES: dict[str, Any] = {
    "/v1/memory/append": {"scope": {"tenant": "shop", "user": "ann", "conversation": "c1"}, "events": []},
    "/v1/memory/recall": {"scope": {"tenant": "shop", "user": "ann"}, "query": "peanuts"},
    "/v1/memory/erase": {"scope": {"tenant": "shop", "user": "ann", "conversation": "c1"}, "message_id": "m9"},
    "/v1/memory/forget": {"scope": {"tenant": "shop", "user": "ann"}, "text": "a text that nobody says"},
    "/conversations": {"conversation_id": "new"},
    "/conversations/{conversation_id}/messages": {"content": "hello"},
    "/agent/chat": {"sessionId": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "message": "hello"},
    "/api/chat": {"conversation_id": "c1", "user_id": "ann", "user_message": "hello"},
    "/admin/index": {},
    "/retrieval/query": {"query": "What is RAG?"},
    "/query": {"query": "What is RAG?"},
}
QUERY = {"tenant": "shop", "user": "ann", "conversation": "c1"}


@dataclass
class Served:
    client: httpx.AsyncClient
    keys: dict[str, str] = field(default_factory=dict[str, str])

    async def ask(self, method: str, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        body = {"json": BODIES[path]} if path in BODIES else {}
        params = {name: QUERY[name] for name in _query_names(method, path)}
        place = re.sub(r"\{\w+\}", "c1", path, count=1).replace("{message_id}", "m9").replace("{job_id}", "j1")
        return await self.client.request(method, place, headers=headers, **({"params": params} | body | more))

    def key(self, name: str) -> dict[str, str]:
        return {"X-API-Key": self.keys[name]}


def _query_names(method: str, path: str) -> list[str]:
    described = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    return [one["name"] for one in described if one["in"] == "query" and one["name"] in QUERY]


@pytest.fixture
async def served(database: Path, scripts: Scripts) -> AsyncIterator[Served]:
    url = f"sqlite:///{database}"
    async with open_memory(url) as memory:
        await memory.append(Scope("shop", "ann", "c1"), [UserMessage("I am allergic to peanuts", id="m1")])
    made: dict[str, str] = {}
    wanted: dict[str, tuple[str, str | None, Role, frozenset[Permission] | None]] = {
        "ann": ("shop", "ann", "USER", None),
        "bob": ("shop", "bob", "USER", None),
        "reader": ("shop", "ann", "USER", frozenset({"read"})),
        "service": ("shop", None, "USER", None),
        "admin": ("shop", "boss", "ADMIN", None),
        "hotel": ("hotel", None, "ADMIN", None),
        "root": ("default", "root", "SUPER_ADMIN", None),
        "scraper": ("default", None, "SUPER_ADMIN", frozenset({"metrics"})),
    }
    async with open_keys(url, Settings()) as keys:
        for name, (tenant, user, role, permissions) in wanted.items():
            made[name], kept = new_key(KEY_SECRET, system_clock(), (tenant, user), role=role, permissions=permissions)
            await keys.add(kept)
    settings = Settings(DATABASE_URL=url, THREADKEEP_API_KEY_SECRET=KEY_SECRET, THREADKEEP_JWT_SECRET=JWT_SECRET)  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings, responder_opener=scripts.opener)) as client:
        yield Served(client, made)


def token(seconds: float = 600, **claims: Any) -> dict[str, str]:
    body = {"sub": "ann", "tenant": "shop", "exp": datetime.now(UTC) + timedelta(seconds=seconds)} | claims
    return {"Authorization": f"Bearer {jwt.encode(body, JWT_SECRET, 'HS256')}"}


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-API-Key": "tk_" + "a" * 12 + "_" + "a" * 43}, {"Authorization": "Bearer a.b.c"}],
    ids=["nothing", "a key", "a token"],
)
async def test_no_route_answers_a_stranger(served: Served, headers: dict[str, str]) -> None:
    assert len(OPERATIONS) >= 17
    for method, path in OPERATIONS:
        answer = await served.ask(method, path, headers)
        assert answer.status_code == 401, (method, path, answer.text)
        assert answer.json()["code"] == "unauthenticated"
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_route_says_in_the_document_that_it_wants_a_credential(method: str, path: str) -> None:
    operation = DOCUMENT["paths"][path][method.lower()]

    assert {name for one in operation["security"] for name in one} == {"ApiKey", "Token"}
    assert {"401", "403", "404", "429"} <= operation["responses"].keys()


async def test_a_strangers_body_is_not_even_read(served: Served) -> None:
    sent = {"Content-Type": "application/json"}
    answer = await served.client.post("/v1/memory/append", content=b"not json", headers=sent)

    assert is_problem(answer, 401, "unauthenticated")


@pytest.mark.parametrize("path", sorted(OPEN_TO_ALL | {"/openapi.json"}))
async def test_health_and_the_document_are_open(served: Served, path: str) -> None:
    assert (await served.client.get(path)).status_code == 200


# All but those that begin something of the caller's own.
OF_ANN = [
    (method, path)
    for method, path in OPERATIONS
    if path not in {"/conversations", "/agent/chat", "/retrieval/query", "/query", "/metrics"}
    and not path.startswith("/admin")
]


@pytest.mark.parametrize("other", ["bob", "hotel"])
async def test_what_is_somebody_elses_answers_as_if_it_were_not_there(served: Served, other: str) -> None:
    for method, path in OF_ANN:
        answer = await served.ask(method, path, served.key(other) | {"X-Tenant-ID": "shop"})

        assert is_problem(answer, 404, "not_found"), (method, path)
        assert answer.json()["detail"] == "there is no such user or conversation"
    kept = await served.ask("GET", "/v1/memory/history", served.key("ann"))
    assert [one["content"] for one in kept.json()["messages"]] == ["I am allergic to peanuts"]


@pytest.mark.parametrize("who", ["ann", "service", "admin", "root"])
async def test_those_who_may_reach_a_user_read_its_talk(served: Served, who: str) -> None:
    acting = {} if who == "ann" else {"X-User-ID": "ann", "X-Tenant-ID": "shop"}

    history = await served.ask("GET", "/conversations/{conversation_id}/history", served.key(who) | acting)
    direct = await served.ask("GET", "/v1/memory/history", served.key(who))

    assert [one["content"] for one in history.json()["messages"]] == ["I am allergic to peanuts"]
    assert direct.json()["messages"] == history.json()["messages"]


async def test_a_user_that_asks_for_another_by_header_is_told_there_is_nobody(served: Served) -> None:
    for wish in ({"X-User-ID": "ann"}, {"X-Tenant-ID": "hotel"}):
        answer = await served.ask("GET", "/conversations/{conversation_id}/history", served.key("bob") | wish)
        assert is_problem(answer, 404, "not_found")


async def test_one_session_id_under_two_users_is_two_sessions(served: Served) -> None:
    await served.ask("POST", "/agent/chat", served.key("ann"))
    mine = await served.ask("POST", "/agent/chat", served.key("bob"))

    assert mine.json()["reply"] == "Your first question."


async def test_a_tenant_that_is_not_named_is_the_credentials(served: Served) -> None:
    answer = await served.client.get(
        "/v1/memory/history", params={"user": "ann", "conversation": "c1"}, headers=served.key("service")
    )

    assert len(answer.json()["messages"]) == 1


async def test_a_key_allows_what_it_was_made_for(served: Served) -> None:
    read = await served.ask("GET", "/v1/memory/history", served.key("reader"))
    written = await served.ask("POST", "/v1/memory/append", served.key("reader"))
    erased = await served.ask("DELETE", "/conversations/{conversation_id}", served.key("reader"))
    spoken = await served.ask("POST", "/agent/chat", served.key("reader"))

    assert read.status_code == 200
    assert is_problem(written, 403, "forbidden")
    assert is_problem(erased, 403, "forbidden")
    assert (spoken.status_code, spoken.json()["code"]) == (403, "forbidden")


async def test_indexing_and_the_whole_store_are_for_those_in_charge(served: Served) -> None:
    for who, index, whole in (("ann", 403, 403), ("service", 403, 403), ("admin", 202, 403), ("root", 202, 200)):
        indexed = await served.client.post("/admin/index", json={}, headers=served.key(who))
        counted = await served.client.get("/v1/memory/stats", headers=served.key(who))
        exported = await served.client.get("/v1/memory/export", headers=served.key(who))
        scraped = await served.client.get("/metrics", headers=served.key(who))
        found = indexed.status_code, counted.status_code, exported.status_code, scraped.status_code
        assert found == (index, whole, whole, whole), who


async def test_a_key_for_scraping_scrapes_and_does_nothing_else(served: Served) -> None:
    key = served.keys["scraper"]

    for scheme in ("ApiKey", "apikey"):  # as Prometheus sends it
        answer = await served.client.get("/metrics", headers={"Authorization": f"{scheme} {key}"})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for method, path in OPERATIONS:
        if path != "/metrics":
            refused = await served.ask(method, path, {"X-API-Key": key})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
    assert (await served.client.get("/metrics", headers={"Authorization": f"ApiKey {key}x"})).status_code == 401


async def test_a_token_reaches_its_own_user_and_goes_on_to_the_tools(served: Served, scripts: Scripts) -> None:
    sent = token()
    answer = await served.ask("POST", "/agent/chat", sent)

    assert answer.status_code == 200
    asked = scripts.latest.asked[-1]
    assert (asked.scope.tenant, asked.scope.user) == ("shop", "ann")
    assert asked.token == sent["Authorization"].removeprefix("Bearer ")
    other = await served.ask("GET", "/v1/memory/history", token(sub="bob"))
    assert is_problem(other, 404, "not_found")


@pytest.mark.parametrize("headers", [token(seconds=-100), token(role="KING"), {"Authorization": "Basic YTpi"}])
async def test_a_token_that_does_not_hold_is_refused(served: Served, headers: dict[str, str]) -> None:
    assert is_problem(await served.ask("GET", "/v1/memory/stats", headers), 401, "unauthenticated")


async def test_a_key_never_goes_to_the_tools(served: Served, scripts: Scripts) -> None:
    await served.ask("POST", "/agent/chat", served.key("ann"))

    assert scripts.latest.asked[-1].token is None


async def test_two_credentials_at_once_or_one_twice_are_refused(served: Served) -> None:
    both = await served.ask("GET", "/v1/memory/stats", served.key("root") | token())
    twice = [("X-API-Key", served.keys["root"]), ("X-API-Key", served.keys["bob"])]
    repeated = await served.client.get("/v1/memory/stats", headers=twice)

    assert is_problem(both, 401, "unauthenticated")
    assert is_problem(repeated, 400, "repeated_header", "X-API-Key")


async def test_one_credential_may_not_ask_more_often_than_it_may(database: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{database}", THREADKEEP_RATE_LIMIT="3/minute")  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings)) as client:
        answers = [await client.get("/v1/memory/stats") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert is_problem(answers[-1], 429, "rate_limited")


async def test_users_of_an_application_that_names_no_credentials_do_not_use_up_each_others_calls(
    database: Path,
) -> None:
    async def told_by_a_header(request: Any) -> Principal:
        return Principal("shop", request.headers["x-who"])

    settings = Settings(DATABASE_URL=f"sqlite:///{database}", THREADKEEP_RATE_LIMIT="2/minute")  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings, identify=told_by_a_header)) as client:
        callers = ("ann", "ann", "ann", "bob")
        answers = [await client.get("/conversations", headers={"X-Who": who}) for who in callers]

    assert [answer.status_code for answer in answers] == [200, 200, 429, 200]


async def test_an_application_may_tell_by_itself_who_calls(database: Path) -> None:
    async def everybody_is_ann(request: Any) -> Principal:
        return Principal("shop", request.headers["x-who"])

    settings = Settings(DATABASE_URL=f"sqlite:///{database}")
    async with client_of(create_app(settings, identify=everybody_is_ann)) as client:
        own = await client.get("/v1/memory/history", params=QUERY, headers={"X-Who": "ann", "Host": "shop.example"})
        other = await client.get("/v1/memory/history", params=QUERY, headers={"X-Who": "bob"})

    assert own.status_code == 200
    assert is_problem(other, 404, "not_found")


async def test_without_authentication_only_this_machine_may_call(database: Path) -> None:
    app = create_app(Settings(DATABASE_URL=f"sqlite:///{database}"))
    async with app.router.lifespan_context(app):
        for client, host, status in (
            ("127.0.0.1", "127.0.0.1", 200), ("10.0.0.7", "127.0.0.1", 421), ("127.0.0.1", "shop.example", 421),
        ):  # fmt: skip
            transport = httpx.ASGITransport(app, client=(client, 5))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
                assert (await http.get("/v1/memory/stats")).status_code == status


async def test_a_key_set_that_is_not_there_keeps_the_service_from_starting(database: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{database}", THREADKEEP_JWT_JWKS="nowhere.json")  # pyright: ignore[reportCallIssue]
    app = create_app(settings)

    with pytest.raises(InvalidSetting):
        async with app.router.lifespan_context(app):
            pass


@pytest.mark.parametrize("credential", ["a key that is revoked", "a token that expires"])
async def test_a_stream_ends_with_the_credential_that_opened_it(
    served: Served, database: Path, monkeypatch: pytest.MonkeyPatch, credential: str
) -> None:
    monkeypatch.setattr("threadkeep.http.identity._CHECKED_AGAIN_SECONDS", 0)
    monkeypatch.setattr("threadkeep.identity.authenticator._FRESH_SECONDS", 0)
    by_key = "key" in credential
    headers = served.key("ann") if by_key else token(seconds=2 - Settings().jwt_skew_seconds)
    streams = served.client._transport.app.state.streams  # pyright: ignore
    listening = asyncio.create_task(served.client.get("/conversations/c1/stream", headers=headers))
    async with asyncio.timeout(20):
        while not streams.listened_to(Scope("shop", "ann", "c1")):
            assert not listening.done()
            await asyncio.sleep(0.01)
        if by_key:
            async with open_keys(f"sqlite:///{database}", Settings()) as keys:
                await keys.revoke(str(prefix_of(served.keys["ann"])), system_clock())
        while (await served.client.get("/conversations", headers=headers)).status_code != 401:
            await asyncio.sleep(0.05)
        said = {"scope": QUERY, "events": [{"kind": "UserMessage", "text": "and to cashews"}]}
        await served.client.post("/v1/memory/append", json=said, headers=served.key("service"))
        heard = (await listening).text

    assert "event: ready" in heard
    assert "cashews" not in heard
