"""What every test server can do, and the two kinds: one we start, and one named by an environment variable."""

import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Self

from tests.servers.ports import free_port, is_free
from tests.servers.process import ServerProcess, give_to_account
from tests.servers.reaper import reaper
from tests.servers.waiting import wait_until

READY_SECONDS = 30
FIRST_START_ATTEMPTS = 3


class ServerDidNotStart(RuntimeError):
    """The server ended, or did not answer in time; carries the end of its log."""


class ServerIsNotOurs(RuntimeError):
    """A server named by an environment variable cannot be killed or restarted."""


class Server(ABC):
    """Calls are plain and block; inside an async test that needs its loop meanwhile, use `asyncio.to_thread`."""

    owned: ClassVar[bool]

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL the server and its children; its data folder and port stay."""

    @abstractmethod
    def restart(self) -> None:
        """Start again on the same port and data, stopping it first if it runs."""

    @abstractmethod
    def wipe(self) -> None:
        """Empty the data of a running server."""

    @abstractmethod
    def stop(self) -> None:
        """End the server and remove its folder; harmless when it is not running."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class ExternalServer(Server):
    """A server somebody else runs: used and wiped, never started or stopped."""

    owned = False

    def __init__(self, variable: str, url: str, wipe: Callable[[str], None]) -> None:
        self._variable, self._url, self._wipe = variable, url, wipe

    @property
    def url(self) -> str:
        return self._url

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def wipe(self) -> None:
        self._wipe(self._url)

    def kill(self) -> None:
        raise ServerIsNotOurs(f"cannot kill the server at {self._variable}: this test run did not start it")

    def restart(self) -> None:
        raise ServerIsNotOurs(f"cannot restart the server at {self._variable}: this test run did not start it")


class OwnedServer(Server):
    """A server started on a free loopback port, with a temporary folder of its own."""

    owned = True
    name: ClassVar[str]
    polite_signal: ClassVar[signal.Signals] = signal.SIGTERM
    step_down: ClassVar[bool] = True  # from root; not where the program is Python of this very environment

    def __init__(self) -> None:
        self.port = 0
        self._folder: Path | None = None
        self._process: ServerProcess | None = None
        self.seconds_to_start = 0.0

    @abstractmethod
    def command(self) -> Sequence[str | Path]: ...

    @abstractmethod
    def answers(self) -> bool:
        """Whether a real client gets a real answer now."""

    def prepare(self) -> None:
        """Fill a new, empty folder before the first start."""

    @property
    def folder(self) -> Path:
        if self._folder is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._folder

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and not self._process.has_ended()

    def start(self) -> None:
        if self._folder is not None:
            raise RuntimeError(f"{self.name} is already started; use restart()")
        began = time.monotonic()
        self._make_folder()
        try:
            self.prepare()
            self._launch_on_a_free_port()
        except BaseException:
            self.stop()
            raise
        self.seconds_to_start = time.monotonic() - began

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        self._end_politely()
        self._launch()

    def stop(self) -> None:
        self._end_politely()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            reaper().forget_folder(self._folder)
            self._folder = None

    def _make_folder(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"threadkeep-{self.name}-"))
        reaper().watch_folder(self._folder)
        give_to_account(self._folder)

    def _launch_on_a_free_port(self) -> None:
        for attempts_left in reversed(range(FIRST_START_ATTEMPTS)):
            self.port = free_port()
            try:
                self._launch()
                return
            except ServerDidNotStart:
                # Between finding the port free and the server's bind, another process may have taken it.
                if is_free(self.port) or not attempts_left:
                    raise

    def _launch(self) -> None:
        self._process = ServerProcess(self.command(), self.folder, self.log, step_down=self.step_down)
        try:
            wait_until(self._is_ready, seconds=READY_SECONDS, what=f"{self.name} answers")
        except (TimeoutError, ServerDidNotStart) as problem:
            self.kill()
            raise ServerDidNotStart(f"{problem}\n{self._log_tail()}") from problem

    def _is_ready(self) -> bool:
        if not self.running:
            raise ServerDidNotStart(f"{self.name} ended while starting")
        return self.answers()

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else "(no log)"

    def _end_politely(self) -> None:
        if self._process is not None:
            self._process.stop(self.polite_signal)
            self._process = None
