"""The MCP server under what comes by npm: the Inspector, the conformance scenarios, Ajv in strict mode.

`make release-check` installs them and names their folder in `RELEASE_NPM`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.library import fill
from tests.mcp.serving import served
from threadkeep.settings import Settings

FOLDER = Path(os.environ.get("RELEASE_NPM", "")).absolute()
pytestmark = pytest.mark.skipif(
    "RELEASE_NPM" not in os.environ, reason="opt-in: `make release-check` installs what comes by npm"
)
# Those that any server should pass; the others want a server with tools that were made for them.
SCENARIOS = [
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
    "caching",
]
TOOLS = {"retrieve", "remember", "recall", "history", "forget"}


@pytest.fixture
async def url(tmp_path: Path) -> str:
    where = f"sqlite:///{tmp_path}/tk.db"
    await fill(where)
    return where


async def node(home: Path, *command: str, given: str = "") -> tuple[int, str, str]:
    """Run with the node that npm installed; what it keeps for its user goes to `home`."""
    programs = FOLDER / "node_modules"
    path = f"{programs / 'node/bin'}{os.pathsep}{programs / '.bin'}{os.pathsep}{os.environ['PATH']}"
    running = await asyncio.create_subprocess_exec(
        "env", *command, cwd=FOLDER, env={"PATH": path, "HOME": str(home)}, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    out, err = await running.communicate(given.encode())
    return running.returncode or 0, out.decode(), err.decode()


async def inspected(home: Path, *arguments: str) -> Any:
    code, out, err = await node(home, "mcp-inspector", "--cli", *arguments)
    assert code == 0, out + err
    return json.loads(out)


async def test_the_inspector_lists_the_tools_over_stdio_and_finds_their_schemas_portable(
    url: str, tmp_path: Path
) -> None:
    server = [sys.executable, "-m", "threadkeep.cli", "mcp", "--url", url]
    found = await inspected(tmp_path, *server, "--method", "tools/list", "--strict")
    assert {tool["name"] for tool in found["tools"]} == TOOLS


async def test_the_inspector_calls_a_tool_over_http_in_the_conversation_of_its_metadata(
    url: str, tmp_path: Path
) -> None:
    async with served(Settings(DATABASE_URL=url)) as address:  # type: ignore[call-arg]
        at = [f"{address}/mcp", "--method", "tools/call", "--tool-metadata", "vscode.conversationId=abc"]
        noted = await inspected(tmp_path, *at, "--tool-name", "remember", "--tool-arg", "text=I drink tea")
        assert noted["structuredContent"]["conversation"] == "abc"
        recalled = await inspected(tmp_path, *at, "--tool-name", "recall", "--tool-arg", "query=tea")
        assert [hit["content"] for hit in recalled["structuredContent"]["hits"]] == ["I drink tea"]


async def test_ajv_compiles_every_schema_of_every_tool_in_strict_mode(url: str, tmp_path: Path) -> None:
    server = [sys.executable, "-m", "threadkeep.cli", "mcp", "--url", url]
    found = await inspected(tmp_path, *server, "--method", "tools/list")
    assert await compiled(tmp_path, found) == {"compiled": 2 * len(TOOLS), "refused": []}

    found["tools"][0]["inputSchema"]["colour"] = "blue"
    (refused,) = (await compiled(tmp_path, found))["refused"]
    assert 'unknown keyword: "colour"' in refused


async def compiled(home: Path, listed: Any) -> dict[str, Any]:
    program = Path(__file__).with_name("compile_schemas.cjs")
    code, out, err = await node(home, "node", str(program), given=json.dumps(listed))
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_scenario_that_any_server_should_pass_is_passed(scenario: str, url: str, tmp_path: Path) -> None:
    async with served(Settings(DATABASE_URL=url)) as address:  # type: ignore[call-arg]
        code, out, err = await node(
            tmp_path, "conformance", "server", "--url", f"{address}/mcp", "--scenario", scenario
        )
    assert code == 0, out + err
    assert "0 failed, 0 warnings" in out + err
