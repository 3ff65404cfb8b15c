"""Answers of tools, and a server in this process with the SDK's own client to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.client import Client

from threadkeep.compose.retrieval import open_mcp_backend
from threadkeep.identity.principal import Principal
from threadkeep.mcp.server import mcp_server
from threadkeep.scope import Scope
from threadkeep.settings import Settings

TALK = {"vscode.conversationId": "ba971ddd-9344-437e-b846-3ea1de5cbcd8", "vscode.requestId": "f8970589"}


def told(result: Any) -> dict[str, Any]:
    """The text says what the structure says."""
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def failure(result: Any) -> dict[str, Any]:
    assert result.is_error
    answer = json.loads(result.content[0].text)
    assert answer["success"] is False
    assert isinstance(answer["error"], str), "a sentence: clients show it"
    return answer


@asynccontextmanager
async def connected(url: str, user: str = "ann", mode: str = "auto") -> AsyncGenerator[Client]:
    """No pipe in between: what is checked is the server's."""
    async with open_mcp_backend(url, Settings()) as backend:
        server = mcp_server(backend, lambda _: (Principal("default", user), Scope("default", user)))
        async with Client(server, mode=mode) as client:  # type: ignore[arg-type]
            yield client
