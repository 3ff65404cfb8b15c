"""The service's own paths leave no trace: of what was said, of who called with what, of what failed."""

from pathlib import Path

import pytest

from tests.privacy.canaries import personal_canaries
from tests.privacy.test_agent_canaries import text_of
from tests.privacy.test_canaries import everything_logged
from tests.privacy.token_readers import every_encoding
from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from threadkeep import Settings
from threadkeep.http.app import create_app
from threadkeep.testing.traces import Traces

__all__ = ["everything_logged"]
PERSONAL = personal_canaries()[::10]
TOKEN = "canarytoken0001quill.canarytoken0002quill.canarytoken0003quill"


@pytest.mark.usefixtures("everything_logged")
async def test_no_canary_that_came_over_http_is_in_any_file_or_log(tmp_path: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", THREADKEEP_CHAT_RATE_LIMIT="1000000/second")  # pyright: ignore[reportCallIssue]
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-ID": "canaryrequest0001@quill.example"}
    async with client_of(create_app(settings, responder_opener=Scripts().opener)) as client:
        talk = (await client.post("/conversations", headers=headers)).json()["conversation_id"]
        for number, canary in enumerate(PERSONAL):
            said = text_of(canary.event) + (" and time out", " and stumble", "")[number % 3]
            session = f"3f0c9d4e-8d1b-4c57-9a51-{number:012d}"
            await client.post("/agent/chat", json={"sessionId": session, "message": said}, headers=headers)
            await client.post(f"/conversations/{talk}/messages", json={"content": said}, params={"wait": "true"})
            await client.post("/api/chat", json={"conversation_id": "c", "user_id": "u", "user_message": said})
        kept = (await client.get("/v1/memory/stats")).json()["messages"]
        needles = [*(canary.needle for canary in PERSONAL), *TOKEN.split("."), "canaryrequest0001"]
        scan = Traces(needles, every_encoding())
        assert scan.in_folder(tmp_path) == set()

    assert kept > len(PERSONAL) * 3
    assert scan.in_folder(tmp_path) == set()
