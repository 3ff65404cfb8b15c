"""Whose documents an assistant answers from: those of whom the caller speaks for, not of whom an admin looks after."""

import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.conftest import concierge
from tests.agent.recording import RecordingModel
from tests.mcp.library import document, fill
from tests.mcp.serving import bearer, settings_for
from tests.service.conftest import client_of
from threadkeep import Memory, Settings
from threadkeep.compose.assistant import open_assistant
from threadkeep.compose.service import open_keys
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock

HOTEL = Path(__file__).parents[2] / "examples" / "hotel_concierge"
DOCUMENTS = (
    document("public.md", "The comet garden opens in May for all visitors."),
    document("anns.md", "The comet garden of Ann is a secret orchard.", "private", owner="ann"),
)
QUESTION = "Where is the comet garden?"
SECRET = "k" * 32
AS_ANN = {"X-User-ID": "ann"}


async def asked_over(client: httpx.AsyncClient, route: str, headers: dict[str, str]) -> None:
    if route == "/conversations":
        talk = (await client.post(route, json={"language": "en"}, headers=headers)).json()["conversation_id"]
        path, body = f"{route}/{talk}/messages?wait=true", {"content": QUESTION}
    elif route == "/agent/chat":
        path, body = route, {"sessionId": str(uuid.uuid4()), "message": QUESTION}
    else:
        path, body = route, {"conversation_id": "c", "user_id": "ann", "user_message": QUESTION}
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text


def _of_every_datasource(folder: Path) -> Path:
    shutil.copytree(HOTEL, folder)
    file = folder / "assistant.toml"
    file.write_text(re.sub(r"(?m)^datasources = .*\n", "", file.read_text("utf-8")), "utf-8")
    return folder


@pytest.mark.parametrize("route", ["/conversations", "/agent/chat", "/api/chat"])
@pytest.mark.parametrize(("who", "sees"), [("ann", True), ("front-end", True), ("admin", False), ("super-admin", True)])
async def test_private_documents_answer_whoever_speaks_for_their_owner(
    database: Path, tmp_path: Path, route: str, who: str, sees: bool
) -> None:
    hotel = _of_every_datasource(tmp_path / "hotel")
    url = f"sqlite:///{database}"
    await fill(url, *DOCUMENTS)
    settings = settings_for(url, THREADKEEP_API_KEY_SECRET=SECRET)
    key, kept = new_key(SECRET, system_clock(), ("default", None))
    async with open_keys(url, settings) as keys:
        await keys.add(kept)
    credentials: dict[str, dict[str, str]] = {
        "ann": bearer("ann"),
        "front-end": {"X-API-Key": key} | AS_ANN,
        "admin": bearer("boss", role="ADMIN") | AS_ANN,
        "super-admin": bearer("root", role="SUPER_ADMIN") | AS_ANN,
    }
    model = RecordingModel("In the park.")

    def opener(memory: Memory) -> Any:
        return open_assistant(memory, settings, hotel, url=url, model=model)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        await asked_over(client, route, credentials[who])

    assert "opens in May" in model.requests[-1].system
    assert ("secret orchard" in model.requests[-1].system) is sees


@pytest.mark.parametrize("tenant", [None, "hotel"])
async def test_what_an_admin_indexes_is_answered_from_or_refused_with_the_reason(
    database: Path, tmp_path: Path, tenant: str | None
) -> None:
    folder = _of_every_datasource(tmp_path / "hotel")
    if tenant is not None:
        file = folder / "assistant.toml"
        file.write_text(f'tenant = "{tenant}"\n' + file.read_text("utf-8"), "utf-8")
    url = f"sqlite:///{database}"
    settings = settings_for(url, THREADKEEP_ASSISTANT=str(folder))
    model = RecordingModel("In the park.")

    def opener(memory: Memory) -> Any:
        return open_assistant(memory, settings, folder, url=url, model=model)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        (folder / "knowledge" / "orchard.md").write_text("# Garden\n\nThe comet garden has forty plum trees.\n")
        admins = {name: bearer("boss", role="ADMIN", tenant=name) for name in ("default", "hotel")}
        own = tenant or "default"
        (other,) = admins.keys() - {own}
        refused = await client.post("/admin/index", params={"wait": "true"}, headers=admins[other])
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert f"of tenant '{own}'" in refused.json()["detail"]
        elsewhere = await client.post(
            "/admin/index", params={"wait": "true"}, headers=admins[other], json={"datasource": "for-retrieval"}
        )
        assert elsewhere.json()["status"] == "done"
        await asked_over(client, "/agent/chat", bearer("ann", tenant=own))
        assert "plum trees" not in model.requests[-1].system

        done = await client.post("/admin/index", params={"wait": "true"}, headers=admins[own])
        assert (done.status_code, done.json()["status"]) == (200, "done")
        for asking in ("default", "hotel"):
            await asked_over(client, "/agent/chat", bearer("ann", tenant=asking))
            assert "plum trees" in model.requests[-1].system


@pytest.mark.parametrize("named", [False, True], ids=["none", "service-key"])
async def test_a_guest_without_a_name_is_not_told_what_another_one_said(
    database: Path, tmp_path: Path, named: bool
) -> None:
    """Neither without credentials nor with one of a service that names no user; whatever the folder says."""
    url = f"sqlite:///{database}"
    hotel = concierge(tmp_path, "user")
    secrets = {"THREADKEEP_API_KEY_SECRET": SECRET} if named else {}
    settings = Settings(DATABASE_URL=url, THREADKEEP_EMBEDDER="none", **secrets)  # pyright: ignore[reportArgumentType, reportCallIssue]
    headers: dict[str, str] = {}
    if named:
        key, kept = new_key(SECRET, system_clock(), ("default", None))
        async with open_keys(url, settings) as keys:
            await keys.add(kept)
        headers = {"X-API-Key": key}

    async def say(client: httpx.AsyncClient, session: uuid.UUID, message: str) -> str:
        body = {"sessionId": str(session), "message": message}
        return (await client.post("/agent/chat", json=body, headers=headers)).json()["reply"]

    def opener(memory: Memory) -> Any:
        return open_assistant(memory, settings, hotel, url=url)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        first, second = uuid.uuid4(), uuid.uuid4()
        await say(client, first, "I am staying in room 214.")
        assert "214" not in await say(client, second, "Which room am I staying in?")
        assert "214" in await say(client, first, "Which room am I staying in?")
