"""What the page for applications that exist already says of stores that are down, and of its own length."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import PAGES
from tests.service.conftest import client_of
from threadkeep import Settings, open_memory
from threadkeep.compat import SessionStore, answered_by
from threadkeep.errors import StoreError
from threadkeep.http.app import create_app

SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
NOBODY_LISTENS = Settings().model_copy(
    update={
        "database_url": "postgresql://u:p@127.0.0.1:1/none",
        "redis_url": "redis://127.0.0.1:1",
        "connect_timeout_seconds": 1,
    }
)
(PAGE,) = (page for page in PAGES if page.name == "docs/how-to/existing_app.md")


class Agent:
    async def chat(
        self,
        user_message: str,
        jwt: str | None = None,
        language_code: str | None = None,
        history: list[dict[str, Any]] | None = None,
    ) -> tuple[str, list[Any]]:
        return f"after {len(history or [])}", []


async def test_with_every_store_down_the_agent_still_answers_without_history() -> None:
    async with client_of(create_app(NOBODY_LISTENS, responder_opener=answered_by(Agent()))) as client:
        for message in ("Is there a pool?", "And a sauna?"):
            answer = await client.post("/agent/chat", json={"sessionId": SESSION, "message": message})
            assert (answer.status_code, answer.json()["reply"]) == (200, "after 0")


async def test_with_every_store_down_a_session_store_raises_a_store_error() -> None:
    async with open_memory(settings=NOBODY_LISTENS) as memory:
        with pytest.raises(StoreError):
            await SessionStore(memory).get(SESSION)
        with pytest.raises(StoreError):
            await SessionStore(memory).set(SESSION, {"messages": [{"role": "user", "content": "Is there a pool?"}]})


def test_it_shows_each_name_of_an_existing_application_and_a_route_of_ten_lines() -> None:
    shown = "".join(snippet.code for snippet in PAGE.snippets)
    assert all(f"{name}(" in shown for name in ("SessionStore", "AgentService", "answered_by", "detect_language_bcp47"))
    _, _, route = PAGE.snippets[0].code.partition("@app.post")
    assert len(route.partition("\n\n")[0].splitlines()) == 10
