"""`threadkeep serve` as a process of its own, on a free loopback port."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.servers.reaper import reaper

STOP_SECONDS = 30
COMMAND = (sys.executable, "-m", "threadkeep.cli")


def clean_environment(folder: Path, **more: str) -> dict[str, str]:
    """A developer's own DATABASE_URL must not reach the process under test."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "PYTHONWARNINGS": "error", **more}


class RunningService:
    """Use it in a `with` statement. What the process writes to stderr is its log, kept in `log`."""

    def __init__(self, folder: Path, url: str | None, *arguments: str, **environment: str) -> None:
        self.log = folder / "service.log"
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                [*COMMAND, "serve", "--json", "--port", "0", *(["--url", url] if url else []), *arguments],
                cwd=folder,
                env=clean_environment(folder, **environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        reaper().watch_process(self._child.pid)
        assert self._child.stdout is not None
        announced = self._child.stdout.readline()
        assert announced, f"the service did not start:\n{self.log.read_text()}"
        self.url: str = json.loads(announced)["url"]

    @property
    def pid(self) -> int:
        return self._child.pid

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def stop(self, polite_signal: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        self._child.send_signal(polite_signal)
        code = self._child.wait(STOP_SECONDS)
        reaper().forget_process(self._child.pid)
        return code

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self.stop()
        assert self._child.stdout is not None
        self._child.stdout.close()
