"""What surrounds every request: its id, the Host it names, routes that are not there, errors nobody foresaw."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.talking import TALK, append, is_problem, said
from threadkeep import ConversationRecord, ErasureProof, Scope
from threadkeep.cli.output import JsonLines
from threadkeep.errors import MemoryClosed, StoreUnavailable
from threadkeep.http.app import create_app
from threadkeep.model import Erased
from threadkeep.settings import Settings


@pytest.mark.parametrize("given", ["abc-123", "01J9.Z_x", "a" * 64])
async def test_a_plain_request_id_is_taken_and_returned(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/healthz", headers={"X-Request-ID": given})

    assert answer.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 65, "ann@example.com", 'x"y', "two words"])
async def test_any_other_request_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/healthz", headers={"X-Request-ID": given})

    assert answer.headers["x-request-id"] != given
    assert len(answer.headers["x-request-id"]) == 36


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000"])
async def test_loopback_may_be_called_by_its_own_names(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", ""])
async def test_a_host_that_only_points_at_loopback_is_refused(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get("/v1/memory/export", headers={"Host": host})

    assert is_problem(answer, 421, "wrong_host")


FORM = {"sessionId": (None, "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"), "message": (None, "sent by a page elsewhere")}


ELSEWHERE = ["https://evil.example", "http://127.0.0.1.evil.example", "null", "", "file://"]
ANOTHER_PORT = ["http://127.0.0.1:9", "http://localhost:5173", "https://[::1]:1", "http://localhost:8000"]


@pytest.mark.parametrize("origin", ELSEWHERE + ANOTHER_PORT)
async def test_a_page_of_another_site_cannot_use_its_visitors_own_service(
    talking: httpx.AsyncClient, origin: str
) -> None:
    """Browsers ask nobody before they send a form, or nothing: the page cannot read the answer, but it was sent."""
    for path, sent in (("/agent/chat", {"files": FORM}), ("/conversations", {}), ("/admin/index", {})):
        answer = await talking.post(path, headers={"Origin": origin}, **sent)
        assert answer.status_code == 403, path
        assert answer.json()["code"] == "wrong_origin"

    assert (await talking.get("/v1/memory/stats")).json()["conversations"] == 0


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:5173", "[::1]:1", "LOCALHOST"])
async def test_pages_of_the_service_itself_may(client: httpx.AsyncClient, host: str) -> None:
    sent = {"Host": host, "Origin": f"http://{host.lower()}"}
    assert (await client.post("/conversations", headers=sent)).status_code == 201


async def test_and_our_own_that_tell_nobody_where_they_are(client: httpx.AsyncClient) -> None:
    for site, status in (("same-origin", 201), ("same-site", 403), ("cross-site", 403)):
        sent = {"Origin": "null", "Sec-Fetch-Site": site}
        assert (await client.post("/conversations", headers=sent)).status_code == status


async def test_and_those_that_are_named(database: Path) -> None:
    settings = Settings(
        DATABASE_URL=f"sqlite:///{database}", THREADKEEP_CORS_ORIGINS="https://shop.example,http://localhost:5173"
    )  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings)) as client:
        for origin, status in (
            ("https://shop.example", 201),
            ("http://localhost:5173", 201),
            ("https://evil.example", 403),
            ("http://localhost:5174", 403),
        ):
            assert (await client.post("/conversations", headers={"Origin": origin})).status_code == status


async def test_an_unknown_route_is_a_problem(client: httpx.AsyncClient) -> None:
    for path in ("/nope", "/docs", "/redoc", "/v1/memory/append/"):
        assert is_problem(await client.get(path), 404, "no_such_route")


async def test_a_wrong_method_is_a_problem_that_says_what_is_allowed(client: httpx.AsyncClient) -> None:
    answer = await client.delete("/v1/memory/history")

    assert is_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET"


async def test_health_and_readiness_are_answered(client: httpx.AsyncClient) -> None:
    alive, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert ready.status_code == 200
    assert ready.json() == {
        "status": "ok", "stores": {"archive": "ok"}, "lag": None, "connections": None, "findings": [],
        "authentication": "none",
    }  # fmt: skip


class _Failing:
    """A memory whose every verb ends in the same error."""

    keys = None  # no verb: a memory may have no store of API keys

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, verb: str) -> Any:
        async def fail(*_: Any, **__: Any) -> None:
            raise self._error

        return fail


def app_on(memory: Any) -> Any:
    @asynccontextmanager
    async def opened() -> Any:
        yield memory

    return create_app(Settings(), opened)


async def test_a_store_that_cannot_be_read_is_alive_but_not_ready() -> None:
    async with client_of(app_on(_Failing(MemoryClosed("this memory is closed")))) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert is_problem(await client.get("/readyz"), 503, "memory_closed")


async def test_an_error_nobody_foresaw_is_answered_and_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        async with client_of(app_on(_Failing(RuntimeError("she is allergic to peanuts")))) as client:
            answer = await append(client, said("she is allergic to peanuts"))

    assert is_problem(answer, 500, "internal_error")
    assert "peanuts" not in answer.text + caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name == "threadkeep.http"]
    failure = next(line for line in map(json.loads, ours) if line["event"] == "failure")
    assert failure["error"] == "RuntimeError"
    assert failure["request_id"] == answer.headers["x-request-id"]


async def test_an_erase_that_is_not_complete_is_not_answered_as_a_success() -> None:
    class Stuck:
        async def erase(self, scope: Scope, message_id: str | None) -> ErasureProof:
            return ErasureProof(scope, {"wal": Erased(found=1, failed=1)}, 1)

    async with client_of(app_on(Stuck())) as client:
        answer = await client.post("/v1/memory/erase", json={"scope": TALK})

    assert is_problem(answer, 503, "erase_incomplete")
    assert answer.json()["retryable"] is True
    assert answer.json()["proof"]["stores"]["wal"]["failed"] == 1


async def test_an_export_that_fails_on_the_way_is_cut_off_not_completed() -> None:
    class Dying:
        async def export(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
            now = datetime.now(UTC)
            yield ConversationRecord("shop", "u42", "c1", (), now, now)
            raise StoreUnavailable("the line went dead")

    app = app_on(Dying())
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False} if not sent else await asyncio.Future()

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}, "method": "GET", "path": "/v1/memory/export",
             "query_string": b"", "headers": [(b"host", b"localhost")]}  # fmt: skip
    async with app.router.lifespan_context(app):
        await app(scope, receive, send)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[-1]["more_body"] is True


def test_a_log_line_names_an_exception_without_its_text() -> None:
    try:
        raise ValueError("she is allergic to peanuts")
    except ValueError as error:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "it failed", (), None)
        record.exc_info = (type(error), error, error.__traceback__)

    line = JsonLines().format(record)

    assert json.loads(line)["error"] == "ValueError"
    assert "peanuts" not in line


async def test_the_frameworks_own_tracing_stays_off(database: Path) -> None:
    """It would put query strings, and so users' ids, into spans as soon as the process has a tracer."""
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    api = pytest.importorskip("opentelemetry.trace")
    processors = pytest.importorskip("opentelemetry.sdk.trace.export")
    spans = export.InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(spans))
    api.set_tracer_provider(provider)

    async with client_of(create_app(Settings(DATABASE_URL=f"sqlite:///{database}"))) as client:
        await client.get("/v1/memory/history", params=TALK)

    assert spans.get_finished_spans() == ()
