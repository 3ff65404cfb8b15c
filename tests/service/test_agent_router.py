"""`/agent/chat` before an application's own agent: validate, take the JWT, touch the session, settle the language, and
call `agent.chat(user_message, jwt, language_code, history=history)`."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.agent.test_agent_service import StubGemini, service
from tests.servers.redis import client as redis_client
from tests.service.conftest import client_of
from tests.service.stores import Servers
from tests.service.test_agent_on_servers import SESSION, TALKS, document_at, settings_of
from threadkeep.compat import answered_by
from threadkeep.http.app import create_app
from threadkeep.ports.language import LanguageRules


class Recording:
    def __init__(self) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    async def chat(self, *arguments: Any, **named: Any) -> tuple[str, list[Any]]:
        self.calls.append((arguments, named))
        return f"Reply {len(self.calls)}.", []


@pytest.fixture
def agent() -> Recording:
    return Recording()


@pytest.fixture
async def router(on_postgres: Servers, agent: Recording) -> AsyncIterator[httpx.AsyncClient]:
    opener = answered_by(agent, LanguageRules(tuple(TALKS), "pl"))
    async with client_of(create_app(settings_of(on_postgres), responder_opener=opener)) as client:
        yield client


async def say(client: httpx.AsyncClient, message: str, **headers: str) -> httpx.Response:
    return await client.post("/agent/chat", json={"sessionId": SESSION, "message": message}, headers=headers)


@pytest.mark.parametrize("language", list(TALKS))
async def test_the_agent_is_called_with_message_jwt_language_and_history(
    router: httpx.AsyncClient, agent: Recording, on_postgres: Servers, language: str
) -> None:
    first, second = TALKS[language] if language != "en" else ("Do you have a free room tonight?", TALKS["en"][1])
    answer = await say(router, first, Authorization="Bearer the.callers.jwt")
    assert answer.json() == {"sessionId": SESSION, "language": language, "reply": "Reply 1."}

    await say(router, second, Authorization="Bearer the.callers.jwt")

    assert agent.calls[0] == ((first, "the.callers.jwt", language), {"history": []})
    arguments, named = agent.calls[1]
    assert arguments == (second, "the.callers.jwt", language)
    assert list(named) == ["history"]
    assert [list(one) for one in named["history"]] == [["role", "content", "ts"]] * 2
    assert [(one["role"], one["content"]) for one in named["history"]] == [("user", first), ("assistant", "Reply 1.")]
    document = document_at(on_postgres, f"sessions:{SESSION}")
    assert document["language"] == language
    assert [one["role"] for one in document["messages"]] == ["user", "assistant"] * 2
    with redis_client(on_postgres.redis.url) as redis:
        assert redis.ttl(f"sessions:{SESSION}") > 3_500  # pyright: ignore[reportOperatorIssue]


async def test_what_is_not_valid_never_reaches_the_agent(router: httpx.AsyncClient, agent: Recording) -> None:
    for body in ({"sessionId": "not-a-uuid", "message": "hi"}, {"sessionId": SESSION}, {"message": "hi"}):
        assert (await router.post("/agent/chat", json=body)).status_code == 400
    assert agent.calls == []


async def test_the_service_of_the_concierge_gives_gemini_the_talk_in_its_roles(on_postgres: Servers) -> None:
    agent, gemini = service("Mamy dwa wolne pokoje.", "Śniadanie jest o siódmej.")
    assert isinstance(gemini, StubGemini)
    async with client_of(create_app(settings_of(on_postgres), responder_opener=answered_by(agent))) as client:
        await say(client, "Czy są wolne pokoje na dzisiaj?")
        answer = await say(client, "O której godzinie jest śniadanie?")

    assert answer.json()["reply"] == "Śniadanie jest o siódmej."
    assert gemini.roles() == [
        ("user", "Czy są wolne pokoje na dzisiaj?"),
        ("model", "Mamy dwa wolne pokoje."),
        ("user", "O której godzinie jest śniadanie?"),
    ]
