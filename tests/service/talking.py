"""Short ways to say what most tests of the service say."""

from typing import Any

import httpx

TALK = {"tenant": "shop", "user": "u42", "conversation": "c1"}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "UserMessage", "text": text, **more}


async def append(client: httpx.AsyncClient, *events: Any, scope: Any = TALK, **more: Any) -> httpx.Response:
    return await client.post("/v1/memory/append", json={"scope": scope, "events": list(events), **more})


async def contents(client: httpx.AsyncClient, **scope: str) -> list[str]:
    answer = await client.get("/v1/memory/history", params={**TALK, **scope, "limit": 1_000})
    assert answer.status_code == 200, answer.text
    return [message["content"] for message in answer.json()["messages"]]


async def messages_kept(client: httpx.AsyncClient) -> int:
    return (await client.get("/v1/memory/stats")).json()["messages"]


def is_problem(answer: httpx.Response, status: int, code: str, field: str | None = None) -> bool:
    """Asserts, so that a failure shows what was answered instead."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["field"]) == (status, code, field), answer.text
    assert problem["status"] == status
    assert problem["type"] == f"urn:threadkeep:problem:{code}"
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert {"title", "detail", "fix", "retryable"} <= problem.keys()
    return True
