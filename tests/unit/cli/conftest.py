"""The command as it is called, in this process: arguments in; exit code, stdout and stderr out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from threadkeep import ModelResponse, Scope, SyncMemory, UserMessage
from threadkeep.cli.app import run


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def problem(self) -> Any:
        """The last line: what runs for long may have logged before."""
        return json.loads(self.stderr.splitlines()[-1])


Command = Callable[..., Ended]


@pytest.fixture
def threadkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """In an empty folder, with none of the developer's own settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REDIS_URL", "THREADKEEP_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> Ended:
        code = run(arguments)
        out, err = capfdbinary.readouterr()
        return Ended(code, out.decode(), err.decode())

    return call


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Two users of one tenant; one has two conversations."""
    url = f"sqlite:///{tmp_path}/store.db"
    with SyncMemory(url) as memory:
        memory.append(Scope("shop", "ann", "c1"), [UserMessage("peanuts, please", id="m1"), ModelResponse("Noted.")])
        memory.append(Scope("shop", "ann", "c2"), [UserMessage("Dị ứng đậu phộng")])
        memory.append(Scope("shop", "bob", "c1"), [UserMessage("half a pair: \ud83d")])
    return url
