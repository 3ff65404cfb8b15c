"""The server on stdin and stdout, for the one client that started this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.server.stdio import stdio_server

from threadkeep.identity.principal import Principal
from threadkeep.mcp.server import mcp_server
from threadkeep.mcp.tools import TOOLS, ToolSpec


async def serve_stdio(
    backend: Any, principal: Principal, tools: Sequence[ToolSpec] = TOOLS, *, with_resources: bool = True
) -> None:
    """Until the client closes its end. Whoever started the process is the one it was configured for."""
    server = mcp_server(backend, lambda _: principal, tools, with_resources=with_resources)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
