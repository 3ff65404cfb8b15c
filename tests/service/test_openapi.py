"""The OpenAPI document, and a few hundred requests made from it."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.schemas import BaseSchema

from tests.service.running import RunningService
from threadkeep.http.app import create_app
from threadkeep.settings import Settings

DOCUMENT = create_app(Settings()).openapi()
OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]
TAKING_INPUT = [(method, path) for method, path in OPERATIONS if path.startswith("/v1")]
SEEDED = settings(
    max_examples=30, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseSchema]:
    folder = tmp_path_factory.mktemp("described")
    with RunningService(folder, f"sqlite:///{folder}/described.db") as service:
        yield schemathesis.openapi.from_url(f"{service.url}/openapi.json")


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_what_the_document_allows_is_accepted_and_answered_as_described(
    described: BaseSchema, method: str, path: str
) -> None:
    @SEEDED
    @given(described[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def answered(case: schemathesis.Case) -> None:
        keep_the_rules_between_fields(case)
        case.call_and_validate(timeout=30)

    answered()


@pytest.mark.parametrize(("method", "path"), TAKING_INPUT)
def test_what_the_document_forbids_is_refused_with_a_problem(described: BaseSchema, method: str, path: str) -> None:
    @SEEDED
    @given(described[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def refused(case: schemathesis.Case) -> None:
        case.call_and_validate(timeout=30)

    refused()


def keep_the_rules_between_fields(case: schemathesis.Case) -> None:
    """What JSON Schema cannot say: fields that need or exclude one another, and cursors that only a page can give."""
    body: Any = case.body
    query: dict[str, Any] = case.query or {}
    if case.path.endswith("/append"):
        (case.headers or {}).pop("Idempotency-Key", None)  # it may stand in the body as well
    elif case.path.endswith("/erase") and not body["scope"].get("conversation"):
        body.pop("message_id", None)
    elif case.path.endswith(("/stats", "/export")) and query:
        query.setdefault("user", "somebody")
    query.pop("after", None)


def test_every_route_describes_its_answer_and_its_problems() -> None:
    for method, path in OPERATIONS:
        responses = DOCUMENT["paths"][path][method]["responses"]
        problems = {status: answer["content"] for status, answer in responses.items() if status != "200"}
        assert "200" in responses
        assert {"421", "500"} <= problems.keys(), path
        assert all(list(content) == ["application/problem+json"] for content in problems.values()), path


def test_requests_that_carry_a_body_come_with_an_example() -> None:
    schemas = DOCUMENT["components"]["schemas"]

    assert all(schemas[name]["examples"] for name in ("AppendBody", "RecallBody", "EraseBody", "ProblemDocument"))


def test_the_seven_kinds_of_event_are_told_apart_by_kind() -> None:
    kinds = DOCUMENT["components"]["schemas"]["AppendBody"]["properties"]["events"]["items"]["discriminator"]

    assert kinds["propertyName"] == "kind"
    assert set(kinds["mapping"]) == {
        "UserMessage", "ModelResponse", "ToolRequest", "ToolResult", "SystemNote", "Thought", "DebugTrace",
    }  # fmt: skip
