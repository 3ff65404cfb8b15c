"""The OpenAPI document, and requests made from it: hundreds here, ten thousand with `CHAOS=full`."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.service.running import RunningService
from tests.service.test_serving import library
from threadkeep.compose.service import open_keys
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import Role
from threadkeep.settings import Settings
from threadkeep.wording import words_of

DOCUMENT = create_app(Settings()).openapi()
OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]
PROBES = {"/healthz", "/readyz", "/agent/health", "/metrics"}  # take no input
TAKING_INPUT = [(method, path) for method, path in OPERATIONS if path not in PROBES]
ENVELOPED = {path for _, path in OPERATIONS if path.startswith("/agent/")}
# Asked for by somebody who has no conversations: what it answers to others does not end (see `test_stream.py`).
STREAM = "/conversations/{conversation_id}/stream"
CASES = 280 if os.environ.get("CHAOS") == "full" else 10
KEY_SECRET = "k" * 32
KEY: dict[str, str] = {}  # of somebody who may do everything
STRANGERS_KEY: dict[str, str] = {}
ASKED: Counter[tuple[str, str]] = Counter()
# What is promised of statuses is checked below; that strangers are refused, `test_access.py` asks of every route.
NOT_CHECKED_HERE = [schemathesis.checks.not_a_server_error, ignored_auth]
# The service runs in a thread of this process and may use `random` while a request is drawn here: no strategy does.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")
SEEDED = settings(
    max_examples=CASES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseSchema]:
    folder = tmp_path_factory.mktemp("described")
    assistant = str(library(folder / "library"))
    unlimited = {"THREADKEEP_CHAT_RATE_LIMIT": "1000000/second", "THREADKEEP_EMBEDDER": "none"}
    url = f"sqlite:///{folder}/described.db"
    KEY["X-API-Key"] = asyncio.run(made_key(url, "root", "SUPER_ADMIN"))
    STRANGERS_KEY["X-API-Key"] = asyncio.run(made_key(url, "somebody who only listens", "USER"))
    settled = unlimited | {"THREADKEEP_API_KEY_SECRET": KEY_SECRET}
    with RunningService(folder, url, "--assistant", assistant, **settled) as service:
        yield schemathesis.openapi.from_url(f"{service.url}/openapi.json")


async def made_key(url: str, user: str, role: Role) -> str:
    key, kept = new_key(KEY_SECRET, system_clock(), ("default", user), role=role)
    async with open_keys(url, Settings()) as keys:
        await keys.add(kept)
    return key


@pytest.fixture(autouse=True)
def counted(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """How many requests a test made, for the summary at the run's end (`conftest.py`), from other processes too."""
    before = ASKED.total()
    yield
    record_property("requests", ASKED.total() - before)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_what_the_document_allows_is_accepted_and_answered_as_described(
    described: BaseSchema, method: str, path: str
) -> None:
    @SEEDED
    @given(described[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def answered(case: schemathesis.Case) -> None:
        keep_the_rules_between_fields(case)
        ask(case)

    answered()


@pytest.mark.parametrize(("method", "path"), TAKING_INPUT)
def test_what_the_document_forbids_is_refused_with_a_problem(described: BaseSchema, method: str, path: str) -> None:
    @SEEDED
    @given(described[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def refused(case: schemathesis.Case) -> None:
        # A list of one value, and a header that this service does not look at, break no rule once they are sent.
        assume(not any(isinstance(value, list) for value in (case.query or {}).values()))
        assume("Authorization" not in case.headers)
        ask(case)

    refused()


def ask(case: schemathesis.Case) -> None:
    """No answer of 500 or above."""
    ASKED[case.method, case.path] += 1
    case.headers.pop("Authorization", None)
    key = STRANGERS_KEY if case.path == STREAM else KEY
    answer = case.call(headers=key, timeout=30)
    assert answer.status_code < 500, answer.text
    # What a key had stored may have been deleted since, by another request of these tests: then it is refused.
    erased = [positive_data_acceptance] if answer.status_code == HTTPStatus.GONE else []
    case.validate_response(answer, headers=key, excluded_checks=[*NOT_CHECKED_HERE, *erased])


def keep_the_rules_between_fields(case: schemathesis.Case) -> None:
    """What JSON Schema cannot say: fields that need or exclude one another, and cursors that only a page can give."""
    body: Any = case.body
    query: dict[str, Any] = case.query or {}
    if case.path.endswith("/append"):
        (case.headers or {}).pop("Idempotency-Key", None)  # it may stand in the body as well
    elif case.path.endswith("/erase") and not body["scope"].get("conversation"):
        body.pop("message_id", None)
    elif case.path.endswith("/forget") and not words_of(body["text"]).words:  # invisible characters alone say nothing
        body["text"] = "hello"
    elif case.path.endswith(("/stats", "/export")) and query:
        query.setdefault("user", "somebody")
    elif case.path == "/agent/chat" and not body.get("message"):
        body["message"] = "hello"
    if case.path == "/agent/chat":
        body.pop("audio", None)  # what a recording or a picture is made of, no schema says
        body.pop("image", None)
    query.pop("after", None)


def test_every_route_describes_its_answer_and_its_problems() -> None:
    for method, path in OPERATIONS:
        responses = DOCUMENT["paths"][path][method]["responses"]
        problems = {status: answer["content"] for status, answer in responses.items() if status >= "400"}
        shape = "application/json" if path in ENVELOPED else "application/problem+json"
        assert {"200", "201", "202"} & responses.keys(), path
        assert {"421", "500"} <= problems.keys(), path
        assert all(list(content) == [shape] for content in problems.values()), path


def test_requests_that_carry_a_body_come_with_an_example() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    bodies = [name for name in schemas if name.endswith("Body") and _is_sent(name)]

    assert len(bodies) >= 8
    assert all(schemas[name]["examples"] for name in (*bodies, "ProblemDocument", "ErrorEnvelope"))


def _is_sent(name: str) -> bool:
    """Whether it is a request's own body, not a part of one."""
    return any(
        f"#/components/schemas/{name}" in str(operation["requestBody"])
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    )


def test_the_seven_kinds_of_event_are_told_apart_by_kind() -> None:
    kinds = DOCUMENT["components"]["schemas"]["AppendBody"]["properties"]["events"]["items"]["discriminator"]

    assert kinds["propertyName"] == "kind"
    assert set(kinds["mapping"]) == {
        "UserMessage", "ModelResponse", "ToolRequest", "ToolResult", "SystemNote", "Thought", "DebugTrace",
    }  # fmt: skip
