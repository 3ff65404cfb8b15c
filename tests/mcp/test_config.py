"""What `threadkeep mcp config` prints is what the client's settings take, and it starts the server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from threadkeep.cli.app import run
from threadkeep.cli.mcp import FILES


def test_as_json_it_prints_the_snippet_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", "vscode", "--url", "sqlite:////data/tk.db", "--json"]) == 0
    printed = capsys.readouterr()
    assert [*json.loads(printed.out)] == ["servers"]
    assert printed.err == ""


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


def test_what_a_client_starts_depends_on_no_folder_and_no_path(tmp_path: Path) -> None:
    """As somebody calls it who has not activated the environment it is in."""
    here = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    script = Path(sys.executable).parent / "threadkeep"
    for command in ([str(script)], [sys.executable, "-m", "threadkeep.cli"]):
        for more, place in (([], "database/sqlite.db"), (["--url", "sqlite:///my.db"], "my.db")):
            called = [*command, "mcp", "config", "--client", "claude", *more]
            printed = subprocess.run(called, cwd=tmp_path, env=here, capture_output=True, check=True).stdout
            server = json.loads(printed)["mcpServers"]["threadkeep"]
            assert Path(server["command"]).is_absolute()
            assert server["args"][-3:] == ["mcp", "--url", f"sqlite:///{tmp_path / place}"]
            started = [server["command"], *server["args"]]
            ended = subprocess.run(started, cwd="/", env=here, stdin=subprocess.DEVNULL, capture_output=True)
            assert ended.returncode == 0, ended.stderr
            assert (tmp_path / place).exists()


def test_what_is_set_here_is_set_for_the_client_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is started elsewhere: with another embedder it would replace everybody's vectors, and mask by other rules."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "threadkeep.toml").write_text('redaction_rules = "rules.toml"\n')
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "ollama:bge-m3")
    monkeypatch.setenv("CHROMA_PATH", "vectors")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:6379/0")
    monkeypatch.setenv("THREADKEEP_EMBEDDER_KEY", "sk-secret")
    assert run(["mcp", "config", "--client", "vscode"]) == 0
    printed = capsys.readouterr()
    server = json.loads(printed.out)["servers"]["threadkeep"]
    assert server["env"] == {
        "THREADKEEP_CONFIG": str(tmp_path / "threadkeep.toml"),
        "THREADKEEP_EMBEDDER": "ollama:bge-m3",
        "THREADKEEP_REDACTION_RULES": str(tmp_path / "rules.toml"),
        "CHROMA_PATH": str(tmp_path / "vectors"),
    }
    assert server["args"][-2:] == ["--redis", "redis://127.0.0.1:6379/0"]
    assert "sk-secret" not in printed.out + printed.err
    assert "THREADKEEP_EMBEDDER_KEY" in printed.err


def test_a_gateway_needs_none_of_the_settings_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "ollama:bge-m3")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:6379/0")
    assert run(["mcp", "config", "--client", "cursor", "--gateway", "https://memory.example.com"]) == 0
    server = json.loads(capsys.readouterr().out)["mcpServers"]["threadkeep"]
    assert "env" not in server
    assert server["args"][-2:] == ["--gateway", "https://memory.example.com"]


def test_a_server_is_named_only_if_it_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands in DATABASE_URL may hold a password, which belongs into no client's settings."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:secret@db/tk")
    assert run(["mcp", "config", "--client", "claude"]) == 0
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err
    assert json.loads(printed.out)["mcpServers"]["threadkeep"]["args"][-1] == "mcp"
    assert "DATABASE_URL" in printed.err


@pytest.mark.parametrize(
    ("option", "given", "named"),
    [
        ("--url", "postgresql://ann:secret@db/tk", "DATABASE_URL"),
        ("--redis", "redis://:secret@cache:6379/0", "REDIS_URL"),
        ("--redis", "redis://cache:6379/0?password=secret", "REDIS_URL"),
    ],
)
def test_a_password_that_was_given_is_not_printed_either(
    option: str, given: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed is pasted into files that are committed and shared."""
    for more in ([], ["--json"]):
        assert run(["mcp", "config", "--client", "cursor", option, given, *more]) == 0
        printed = capsys.readouterr()
        assert "secret" not in printed.out + printed.err
        assert option not in json.loads(printed.out)["mcpServers"]["threadkeep"]["args"]
        assert named in printed.err


@pytest.mark.parametrize("option", ["--http", "--gateway"])
def test_an_address_with_a_password_in_it_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = "https://ann:secret@memory.example.com/mcp"
    assert run(["mcp", "config", "--client", "vscode", option, given]) == 1
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err
    assert option in printed.err
