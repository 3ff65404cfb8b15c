"""An application's own agent that fails, or answers what is no answer: its failure is not told as the caller's."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import client_of
from threadkeep import Settings
from threadkeep.compat import answered_by
from threadkeep.http.app import create_app

SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
ASKED = "Is there a free room tonight?"


class VendorsTimeout(Exception):
    """As HTTP clients name theirs: `ReadTimeout`, `APITimeoutError`."""


class Agent:
    def __init__(self, does: Any) -> None:
        self._does = does

    async def chat(self, *arguments: Any, **named: Any) -> Any:
        if isinstance(self._does, BaseException):
            raise self._does
        return self._does


@pytest.mark.parametrize(
    ("does", "status", "code"),
    [
        (TimeoutError(), 504, "model_timeout"),
        (VendorsTimeout("+48 600 700 800"), 504, "model_timeout"),
        (asyncio.CancelledError(), 502, "model_unavailable"),
        ((7, []), 502, "model_error"),
        ((None, []), 502, "model_error"),
        ("only the reply", 502, "model_error"),
        (None, 502, "model_error"),
        (("x" * 2_000_000, []), 502, "model_error"),
        (KeyError("+48 600 700 800"), 500, "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | int) else str(value),
)
async def test_the_caller_is_told_whose_failure_it_was_and_what_was_said_is_kept(
    database: Path, does: Any, status: int, code: str
) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{database}").model_copy(update={"embedder": "none"})
    async with client_of(create_app(settings, responder_opener=answered_by(Agent(does)))) as client:
        answer = await client.post("/agent/chat", json={"sessionId": SESSION, "message": ASKED})
        kept = (await client.get(f"/conversations/{SESSION}/history")).json()

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "600 700" not in answer.text
    assert [one["content"] for one in kept["messages"]] == [ASKED]
    assert kept["unanswered"] == [kept["messages"][0]["id"]]
