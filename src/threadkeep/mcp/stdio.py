"""The server on stdin and stdout, for the one client that started this process."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from threadkeep.identity.principal import Principal
from threadkeep.mcp.server import mcp_server
from threadkeep.mcp.tools import TOOLS, ToolSpec

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")
Received = SessionMessage | Exception


async def serve_stdio(
    backend: Any, principal: Principal, tools: Sequence[ToolSpec] = TOOLS, *, with_resources: bool = True
) -> None:
    """Until the client closes its end. The user who started the process is the one it was configured for."""
    owner = principal.acting(None, None)
    server = mcp_server(backend, lambda _: (principal, owner), tools, with_resources=with_resources)
    async with stdio_server() as (reading, writing), anyio.create_task_group() as tasks:
        sending, received = anyio.create_memory_object_stream[Received](0)
        tasks.start_soon(_handed_on, reading, sending)
        await server.run(received, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _handed_on(reading: Any, sending: ObjectSendStream[Received]) -> None:
    async with sending:
        async for one in reading:
            await sending.send(_read_again(one) if isinstance(one, ValidationError) else one)


def _read_again(refused: ValidationError) -> Received:
    """JSON may hold half a character (a lone surrogate), and is then no message to the SDK, which answers nothing. Such
    a tool's arguments are handed on as they are: the tool refuses them, and names the field."""
    line = refused.errors(include_url=False)[0]["input"]
    if not isinstance(line, str) or not _ESCAPED_HALF.search(line):
        return refused
    try:
        said = json.loads(line)
        whole = json.loads(_HALF.sub("\ufffd", json.dumps(said, ensure_ascii=False)))
        if whole.get("method") == "tools/call" and isinstance(whole["params"].get("arguments"), dict):
            whole["params"]["arguments"] = said["params"]["arguments"]
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(whole, by_name=False))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # no message whatever its characters
        return refused
