"""What the service's own assistant leaves in the tables of checkpoints after a turn in which a tool was called."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.adapters.database import every_value, rows
from tests.agent.recording import RecordingModel, calls
from tests.service.conftest import client_of
from threadkeep import Memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.agent.assistant import Assistant
from threadkeep.compose_assistant import open_assistant
from threadkeep.http.app import create_app
from threadkeep.ports.chat import ToolAnswer
from threadkeep.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "hotel_concierge"
TOOL = '''
"""One tool."""


async def shelf_of_canaries(what: str) -> str:
    """Look something up."""
    return f"toolresultcanary of {what}"
'''


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return request.getfixturevalue(f"{request.param}_server").url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLE, tmp_path / "assistant")
    (folder / "tools.py").write_text(TOOL, encoding="utf-8")
    return folder


async def test_no_tool_text_is_left_by_a_turn_over_http_and_the_next_turn_goes_on(url: str, folder: Path) -> None:
    model = RecordingModel(calls("shelf_of_canaries", what="toolargumentcanary"), "It is on the shelf.", "Still there.")
    settings = Settings(DATABASE_URL=url, THREADKEEP_EMBEDDER="none")  # pyright: ignore[reportCallIssue]
    opened: list[Assistant] = []

    @asynccontextmanager
    async def responder(memory: Memory) -> AsyncIterator[Any]:
        async with open_assistant(memory, settings, folder, url=url, model=model) as assistant:
            opened.append(assistant)
            yield assistant

    session = str(uuid4())
    async with client_of(create_app(settings, responder_opener=responder)) as client:
        answer = await chat(client, session, "Do you have a room for two from 2026-12-01?")
        assert [one["name"] for one in answer["toolTrace"]] == ["shelf_of_canaries"]
        shown = [one.content for one in model.requests[1].messages if isinstance(one, ToolAnswer)]
        assert "toolresultcanary of toolargumentcanary" in shown[0]
        await opened[0].settled()
        assert await left(url) == set()
        assert await in_flight(url, session) == 0
        await chat(client, session, "And one night later?")
        await opened[0].settled()
        assert await left(url) == set()
    assert await kept_turns(url, session) == ["user", "assistant", "user", "assistant"]


async def chat(client: httpx.AsyncClient, session: str, message: str) -> dict[str, Any]:
    answer = await client.post("/agent/chat", json={"sessionId": session, "message": message})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def in_flight(url: str, session: str) -> int:
    threads = f"SELECT thread_key FROM conversation_metadata WHERE thread_id = '{session}'"
    return int(str((await rows(url, f"SELECT count(*) FROM tk_turn_keys WHERE thread_key IN ({threads})"))[0][0]))


async def left(url: str) -> set[str]:
    values = await every_value(url)
    words = ("toolresultcanary", "toolargumentcanary", "shelf_of_canaries")
    return {word for word in words if any(word.encode() in value for value in values)}


async def kept_turns(url: str, session: str) -> list[str]:
    """Roles in the newest checkpoint of the thread, as the saver reads it."""
    owner = await rows(url, f"SELECT tenant, user_id FROM conversation_metadata WHERE thread_id = '{session}'")
    tenant, user = (one.decode() if isinstance(one, bytes) else str(one) for one in owner[0])
    async with ThreadkeepSaver.from_url(url, tenant=tenant, user=user, settings=Settings()) as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": session}})
    assert found is not None
    return [one["role"] for one in found.checkpoint["channel_values"]["chat_history"]]
