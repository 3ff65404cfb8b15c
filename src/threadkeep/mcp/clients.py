"""What to paste into a client's settings so that it starts this server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

ClientName = Literal["vscode", "claude", "cursor"]
FILES: dict[ClientName, str] = {
    "vscode": ".vscode/mcp.json",
    "claude": "claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
}


def snippet(
    client: ClientName, command: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """VS Code calls the list `servers` and wants the kind; the others call it `mcpServers`."""
    server: dict[str, Any] = {"command": command, "args": list(arguments)}
    if environment:
        server["env"] = dict(environment)
    if client == "vscode":
        return {"servers": {"threadkeep": {"type": "stdio", **server}}}
    return {"mcpServers": {"threadkeep": server}}


def snippet_over_http(client: ClientName, url: str) -> dict[str, Any]:
    """For a service that is running already. The client prompts for the token or reads it from the environment."""
    if client == "vscode":
        headers = {"Authorization": "Bearer ${input:threadkeep-token}"}
        asked = [
            {"id": "threadkeep-token", "type": "promptString", "description": "Threadkeep token", "password": True}
        ]
        return {"inputs": asked, "servers": {"threadkeep": {"type": "http", "url": url, "headers": headers}}}
    return {"mcpServers": {"threadkeep": {"url": url, "headers": {"Authorization": "Bearer ${THREADKEEP_TOKEN}"}}}}
