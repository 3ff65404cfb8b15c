"""What is measured and what is logged of a call: nothing that was said in it, asked by it or answered to it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.mcp.library import fill
from tests.mcp.serving import bearer, over_http, served, settings_for
from tests.privacy.canaries import personal_canaries
from tests.privacy.test_agent_canaries import text_of
from tests.privacy.token_readers import every_encoding
from threadkeep.testing.traces import Traces

PERSONAL = personal_canaries()[::10]
PLAIN = "canaryplain0001quill"  # nothing that redaction knows: it is kept, and no log's business
PLACE = {"tenant": "default", "user": "ann", "conversation": "c1"}


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Path]:
    """A folder with all that is logged, down to DEBUG, but for what this test's own clients say of what they send."""
    folder, root = tmp_path / "seen", logging.getLogger()
    folder.mkdir()
    handler, level = logging.FileHandler(folder / "debug.log", encoding="utf-8"), root.level
    handler.addFilter(lambda record: not record.name.startswith(("mcp.client", "httpx", "httpcore", "client")))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield folder
    root.setLevel(level)
    root.removeHandler(handler)
    handler.close()


async def test_no_canary_of_a_call_is_in_its_log_line_or_in_a_metric(tmp_path: Path, seen: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    await fill(url)
    async with served(settings_for(url)) as address, httpx.AsyncClient(base_url=address, trust_env=False) as http:
        async with over_http(address, bearer("ann")) as mcp:
            for canary in PERSONAL:
                said = f"{text_of(canary.event)} {PLAIN}"
                event = {"kind": "UserMessage", "text": said}
                await http.post("/v1/memory/append", json={"scope": PLACE, "events": [event]}, headers=bearer("ann"))
                await http.post("/v1/memory/recall", json={"scope": PLACE, "query": said}, headers=bearer("ann"))
                talk = bearer("ann") | {"X-Conversation-ID": "c1", "X-Request-ID": "r1"}
                await http.post("/retrieval/query", json={"query": said}, headers=talk)
                meta = {"vscode.conversationId": "c1", "vscode.requestId": "canaryrequest0001@quill.example"}
                for tool, field in (("remember", "text"), ("recall", "query"), ("retrieve", "query")):
                    answer = await mcp.call_tool(tool, {field: said}, meta=meta)
                    assert not answer.is_error
                await mcp.call_tool("recall", {"query": said, "topK": said}, meta=meta)
            await mcp.read_resource("threadkeep://conversations/c1")
        told = await http.get("/metrics", headers=bearer("root", role="SUPER_ADMIN"))
        (seen / "metrics.txt").write_text(told.text)
    logged = (seen / "debug.log").read_text("utf-8")
    needles = [*(canary.needle for canary in PERSONAL), PLAIN, "canaryrequest0001"]
    assert Traces(needles, every_encoding()).in_folder(seen) == set()
    assert told.text.count("threadkeep_redactions_total{") >= 3
    assert logged.count('"verb": "retrieve"') == len(PERSONAL)
