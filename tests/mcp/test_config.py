"""What `threadkeep mcp config` prints is what the client's settings take, and it starts the server."""

from __future__ import annotations

import json

import pytest

from threadkeep.cli.app import run
from threadkeep.mcp.clients import FILES


@pytest.mark.parametrize(("client", "key"), [("vscode", "servers"), ("claude", "mcpServers"), ("cursor", "mcpServers")])
def test_the_snippet_of_each_client(client: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", client, "--url", "sqlite:////data/tk.db", "--user", "ann"]) == 0
    printed = capsys.readouterr()
    server = json.loads(printed.out)[key]["threadkeep"]
    assert server["command"].endswith("threadkeep")
    assert server["args"] == ["mcp", "--url", "sqlite:////data/tk.db", "--user", "ann"]
    assert server.get("type") == ("stdio" if client == "vscode" else None)
    assert FILES[client] in printed.err  # type: ignore[index]


@pytest.mark.parametrize("client", ["vscode", "claude", "cursor"])
def test_the_snippet_for_a_running_service_holds_no_token(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", client, "--http", "https://memory.example.com/mcp"]) == 0
    text = capsys.readouterr().out
    (server,) = (json.loads(text).get("servers") or json.loads(text)["mcpServers"]).values()
    assert server["url"] == "https://memory.example.com/mcp"
    assert server["headers"]["Authorization"].startswith("Bearer ${")


def test_an_unknown_client_and_a_gateway_that_is_no_address_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", "emacs"]) == 2
    assert run(["mcp", "--gateway", "ftp://x"]) == 1
    assert "--gateway" in capsys.readouterr().err
