"""A turn of the service's own assistant leaves no checkpoint, and nothing of a tool that was called in it."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.adapters.database import every_value, rows
from tests.agent.recording import RecordingModel, calls, turns_of
from tests.privacy.in_servers import own_database
from tests.service.conftest import client_of
from threadkeep import Memory
from threadkeep.agent.assistant import Assistant
from threadkeep.compose.assistant import open_assistant
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
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without API keys of other tests: a service that asks for none would refuse to start on those."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'memory.db'}"
        return
    with own_database(request.getfixturevalue(f"{request.param}_server").url) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLE, tmp_path / "assistant")
    (folder / "tools.py").write_text(TOOL, encoding="utf-8")
    return folder


async def test_a_turn_over_http_leaves_no_checkpoint_and_no_tool_text_and_the_next_turn_goes_on(
    url: str, folder: Path
) -> None:
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
        await chat(client, session, "And one night later?")
        await opened[0].settled()
        assert await left(url) == set()
        assert len(turns_of(model.requests[-1])) == 3  # two of the turn before, from memory
    assert await threads(url, session) == 0


async def chat(client: httpx.AsyncClient, session: str, message: str) -> dict[str, Any]:
    answer = await client.post("/agent/chat", json={"sessionId": session, "message": message})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def threads(url: str, session: str) -> int:
    found = await rows(url, f"SELECT count(*) FROM conversation_metadata WHERE thread_id = '{session}'")
    return int(str(found[0][0]))


async def left(url: str) -> set[str]:
    values = await every_value(url)
    words = ("toolresultcanary", "toolargumentcanary", "shelf_of_canaries")
    return {word for word in words if any(word.encode() in value for value in values)}
