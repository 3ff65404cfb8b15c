"""`threadkeep worker` as a process of its own."""

import json
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.servers.reaper import reaper
from tests.service.running import COMMAND, STOP_SECONDS, clean_environment

QUICK = {"THREADKEEP_FLUSH_STALE_SECONDS": "1", "THREADKEEP_LAG_LOG_SECONDS": "0.1"}


class RunningWorker:
    """Use it in a `with` statement. What the process writes to stderr is its log."""

    def __init__(self, folder: Path, url: str, redis: str, *arguments: str, **environment: str) -> None:
        folder.mkdir(exist_ok=True)
        self.log = folder / "worker.log"
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                [*COMMAND, "worker", "--json", "--url", url, "--redis", redis, *arguments],
                cwd=folder,
                env=clean_environment(folder, **(QUICK | environment)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        reaper().watch_process(self._child.pid)
        assert self._child.stdout is not None
        announced = self._child.stdout.readline()
        assert announced, f"the worker did not start:\n{self.log.read_text()}"
        self.name: str = json.loads(announced)["worker"]

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        self._child.send_signal(with_signal)
        code = self._child.wait(STOP_SECONDS)
        reaper().forget_process(self._child.pid)
        return code

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def lags(self) -> list[dict[str, Any]]:
        return [line for line in self.logged() if line["event"] == "lag"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self.stop()
        assert self._child.stdout is not None
        self._child.stdout.close()
