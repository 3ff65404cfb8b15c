"""The genuine assistants over HTTP, on Redis and PostgreSQL: the concierge, the shop and the reflecting companion."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.conftest import EXAMPLES
from tests.agent.recording import RecordingModel
from tests.agent.test_hotel import TALKS, knows_the_room
from tests.service.conftest import client_of
from tests.service.stores import Servers
from tests.service.test_agent_on_servers import SESSION, chat, document_at, settings_of
from threadkeep import Scope
from threadkeep.compose.assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.memory import Memory
from threadkeep.models.language import Detection, OfflineDetector
from threadkeep.ports.chat import ChatModel

Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def serve(on_postgres: Servers) -> Serve:
    settings = settings_of(on_postgres)

    @asynccontextmanager
    async def served(folder: Path, model: ChatModel | None = None) -> AsyncIterator[httpx.AsyncClient]:
        def opener(memory: Memory) -> Any:
            return open_assistant(memory, settings, folder, url=on_postgres.sql.url, model=model)

        async with client_of(create_app(settings, responder_opener=opener)) as client:
            yield client

    return served


@pytest.fixture
def detected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What any detector of this process was asked about."""
    asked: list[str] = []
    through = OfflineDetector.detect

    async def detect(detector: OfflineDetector, text: str, allowed: Any = None) -> Detection:
        asked.append(text)
        return await through(detector, text, allowed)

    monkeypatch.setattr(OfflineDetector, "detect", detect)
    return asked


@pytest.mark.parametrize("language", list(TALKS))
async def test_the_concierge_remembers_the_session_and_asks_for_its_language_once(
    serve: Serve, on_postgres: Servers, detected: list[str], language: str
) -> None:
    first, second = TALKS[language]
    model = RecordingModel("OK.", knows_the_room)
    async with serve(EXAMPLES / "hotel_concierge", model) as client:
        new = await chat(client, first)
        document = document_at(on_postgres, f"sessions:{SESSION}")
        again = await chat(client, second)

    assert new == {"sessionId": SESSION, "language": language, "reply": "OK."}
    assert [one["role"] for one in document["messages"]] == ["user", "assistant"]
    assert document["language"] == language
    assert (again["reply"], again["language"]) == ("214", language)
    assert model.turns == [("user", first), ("assistant", "OK."), ("user", second)]
    assert detected == [first]
    assert "Historia rozmowy" in model.requests[-1].system


@pytest.mark.parametrize("language", list(TALKS))
async def test_the_concierge_answers_on_while_redis_is_gone_and_goes_on_when_it_is_back(
    serve: Serve, on_postgres: Servers, detected: list[str], language: str
) -> None:
    first, second = TALKS[language]
    model = RecordingModel("OK.", "OK.", knows_the_room)
    async with serve(EXAMPLES / "hotel_concierge", model) as client:
        await chat(client, first)
        async with asyncio.timeout(60):
            while (await client.get("/readyz")).json()["lag"]["entries"]:
                await asyncio.sleep(0.02)
        on_postgres.redis.kill()
        away = await chat(client, second)
        shown_while_away = model.turns
        on_postgres.redis.restart()
        back = await chat(client, second)

    assert away["reply"] == "OK."
    assert shown_while_away == [("user", first), ("assistant", "OK."), ("user", second)]
    assert (back["reply"], back["language"]) == ("214", language)
    assert detected == [first]


SHOP = {
    "vi": ("cho em hỏi với", "Chính sách bảo hành thế nào?", "không, cảm ơn", "bảo hành 36 tháng", "hỗ trợ thêm gì"),
    "en": ("I have a question", "What is your warranty policy?", "no, thanks", "36-month warranty", "anything else"),
}


@pytest.mark.parametrize("language", list(SHOP))
async def test_the_shop_goes_through_its_nodes(serve: Serve, on_postgres: Servers, language: str) -> None:
    unclear, clear, enough, told, more = SHOP[language]
    async with serve(EXAMPLES / "pc_shop") as client:
        begun = (await client.post("/conversations", json={"language": language})).json()
        path = f"/conversations/{begun['conversation_id']}"

        async def say(text: str) -> dict[str, Any]:
            answer = await client.post(f"{path}/messages", params={"wait": True}, json={"content": text})
            assert answer.status_code == 200, answer.text
            return answer.json()["answer"]

        asked_back, answered, farewell = [await say(text) for text in (unclear, clear, enough)]
        messages = (await client.get(f"{path}/history")).json()["messages"]
        async with asyncio.timeout(60):
            while (await client.get("/readyz")).json()["lag"]["entries"]:
                await asyncio.sleep(0.02)
        (talk,) = (await client.get("/conversations")).json()["items"]

    assert messages[0]["content"] == begun["greeting"]["content"]
    assert (asked_back["kind"], asked_back["content"][-1]) == ("clarify", "?")
    assert [one.get("meta", {}).get("type") for one in messages[:4]] == ["greeting", None, "clarify", None]
    assert answered["kind"] == "answer"
    assert told in answered["content"]
    assert more in answered["content"]
    assert farewell["content"] == messages[-1]["content"]
    assert (talk["status"], talk["messages"], talk["language"]) == ("closed", 7, language)


REFLECTING = """
name = "companion"
languages = ["zh-Hant", "pl", "vi", "en"]
default_language = "zh-Hant"

[reflection]
after_each_turn = true
"""
WORRIES = {
    "zh-Hant": "我最近睡不好，因為工作壓力很大。",
    "pl": "Ostatnio źle śpię, ponieważ mam dużo stresu w pracy.",
    "vi": "Dạo này tôi ngủ không ngon vì công việc quá căng thẳng.",
    "en": "I sleep badly these days because there is a lot of stress at work.",
}


@pytest.mark.parametrize("language", list(WORRIES))
async def test_the_companion_keeps_the_latest_turn_and_reflects_on_it(
    serve: Serve, on_postgres: Servers, tmp_path: Path, language: str
) -> None:
    for name, text in (("assistant.toml", REFLECTING), ("persona.md", "You listen."), ("prompt.txt", "Listen.")):
        (tmp_path / name).write_text(text, "utf-8")
    body = {"conversation_id": "c1", "user_id": "default", "user_message": WORRIES[language]}
    async with serve(tmp_path) as client:
        answer = (await client.post("/api/chat", json=body)).json()
        async with asyncio.timeout(60):
            while (await client.get("/readyz")).json()["lag"]["entries"] or not _reflection(on_postgres):
                await asyncio.sleep(0.02)

    assert set(answer) == {"conversation_id", "user_id", "assistant_message", "reflection", "created_at"}
    latest = document_at(on_postgres, "conv:c1:latest")
    assert (latest["user_msg"], latest["assistant_msg"]) == (WORRIES[language], answer["assistant_message"])
    with on_postgres.archive() as memory:
        kept = memory.history(Scope(user="default", conversation="c1")).messages
        (reflection,) = memory.reflections(Scope(user="default", conversation="c1"))
    assert [one.content for one in kept] == [WORRIES[language], answer["assistant_message"]]
    assert list(reflection.evidence) == [one.id for one in kept]
    assert latest["reflection"]["summary"] == reflection.reflection.summary


def _reflection(servers: Servers) -> Any:
    return document_at(servers, "conv:c1:latest").get("reflection")
