"""The short way to a route answers just as FastAPI's own does, and is really taken."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from threadkeep.http.app import create_app
from threadkeep.http.direct import DirectRoutes
from threadkeep.http.routes import agent, conversations, memory
from threadkeep.settings import Settings

SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
SCOPE = {"tenant": "shop", "user": "u42", "conversation": "c1"}
EVENT = {"kind": "UserMessage", "text": "I am allergic to peanuts", "id": "m1"}
CHAT, APPEND, HISTORY = "/agent/chat", "/v1/memory/append", "/v1/memory/history"
JSON = {"Content-Type": "application/json"}
NOTHING = {"scope": SCOPE, "events": []}
TWICE = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]

REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an append": ("POST", APPEND, {"json": {"scope": SCOPE, "events": [EVENT]}}),
    "the same again, with a key": (
        "POST", APPEND, {"json": {"scope": SCOPE, "events": [EVENT]}, "headers": {"Idempotency-Key": "k"}},
    ),
    "a key that is empty": ("POST", APPEND, {"json": NOTHING, "headers": {"Idempotency-Key": ""}}),
    "a key twice": ("POST", APPEND, {"json": NOTHING, "headers": TWICE}),
    "an unknown field": ("POST", APPEND, {"json": {"scope": SCOPE, "events": [], "more": 1}}),
    "a wrong type": ("POST", APPEND, {"json": {"scope": SCOPE, "events": "none"}}),
    "an unknown kind": ("POST", APPEND, {"json": {"scope": SCOPE, "events": [{"kind": "Rumour"}]}}),
    "no body": ("POST", APPEND, {}),
    "an empty body": ("POST", APPEND, {"content": b"", "headers": JSON}),
    "broken JSON": ("POST", APPEND, {"content": b'{"scope": ', "headers": JSON}),
    "a field twice": ("POST", APPEND, {"content": b'{"scope": {}, "scope": {}, "events": []}', "headers": JSON}),
    "not UTF-8": ("POST", APPEND, {"content": b'{"scope": "\xff"}', "headers": JSON}),
    "not called JSON": ("POST", APPEND, {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
    "a query that is not asked for": ("POST", f"{APPEND}?a=1", {"json": {"scope": SCOPE, "events": []}}),
    "a history": ("GET", HISTORY, {"params": {**SCOPE, "limit": 5}}),
    "a limit that is none": ("GET", HISTORY, {"params": {**SCOPE, "limit": "many"}}),
    "a limit of nought": ("GET", HISTORY, {"params": {**SCOPE, "limit": 0}}),
    "a parameter that is unknown": ("GET", HISTORY, {"params": {**SCOPE, "page": 1}}),
    "a parameter twice": ("GET", f"{HISTORY}?user=a&user=b&conversation=c", {}),
    "a query that is not UTF-8": ("GET", f"{HISTORY}?user=%ff&conversation=c", {}),
    "a history without a user": ("GET", HISTORY, {"params": {"conversation": "c"}}),
    "a history with nothing": ("GET", HISTORY, {}),
    "a talk": ("POST", CHAT, {"json": {"sessionId": SESSION, "message": "Good day"}}),
    "a talk for another user": (
        "POST", CHAT, {"json": {"sessionId": SESSION, "message": "Good day"}, "headers": {"X-User-ID": "u7"}},
    ),
    "a user's name that is none": (
        "POST", CHAT, {"json": {"sessionId": SESSION, "message": "Good day"}, "headers": {"X-User-ID": " "}},
    ),
    "no session": ("POST", CHAT, {"json": {"message": "Good day"}}),
    "nothing said": ("POST", CHAT, {"json": {"sessionId": SESSION}}),
    "conversations": ("GET", "/conversations", {}),
    "another method": ("PUT", CHAT, {"json": {}}),
}  # fmt: skip


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """The same service twice, once without the short way."""
    async with AsyncExitStack() as stack:
        clients: list[httpx.AsyncClient] = []
        for name in ("short", "long"):
            settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/{name}.db")  # pyright: ignore[reportCallIssue]
            app = create_app(settings, responder_opener=Scripts().opener)
            if name == "long":
                app.user_middleware[:] = [one for one in app.user_middleware if one.cls is not DirectRoutes]
            clients.append(await stack.enter_async_context(client_of(app)))
        yield clients[0], clients[1]


async def test_every_request_is_answered_the_same(both: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    for what, (method, path, given) in REQUESTS.items():
        short, long = [await client.request(method, path, **given) for client in both]
        assert (short.status_code, _told(short)) == (long.status_code, _told(long)), what
        assert short.headers["content-type"] == long.headers["content-type"], what


def _told(answer: httpx.Response) -> Any:
    """But for what is new every time."""
    fresh = {"request_id", "traceId", "ts", "stored_at", "message_id", "started_at", "last_activity_at", "generation"}

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items() if name not in fresh}  # pyright: ignore[reportUnknownVariableType]
        return [without(one) for one in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]

    return without(json.loads(answer.content))


def test_the_routes_that_are_called_most_go_the_short_way() -> None:
    routers = [one.router for one in (memory, agent, conversations)]
    direct = DirectRoutes(lambda *_: None, routers)  # type: ignore[arg-type, return-value]
    assert {("POST", APPEND), ("GET", HISTORY), ("POST", CHAT), ("POST", "/v1/memory/recall")} <= direct.plans.keys()
    assert not any("{" in path for _, path in direct.plans)


async def test_a_body_is_handed_on_whole_to_whoever_says_what_is_wrong_with_it(
    both: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    answer = await both[0].post(APPEND, json={"scope": SCOPE, "events": [EVENT, {"kind": "UserMessage", "text": 5}]})
    assert answer.status_code == 422
    assert answer.json()["field"] == "events[1].text"
