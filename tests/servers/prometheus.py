"""A real Prometheus that scrapes what it is told, every second, and asks rules of it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.servers.ports import LOOPBACK
from tests.servers.server import OwnedServer

ANSWER_SECONDS = 5


class PrometheusServer(OwnedServer):
    """`configuration` and `rules` are the texts of its files; a `scrape_interval` of its own makes it quick."""

    name = "prometheus"

    def __init__(self, program: str, configuration: str, rules: dict[str, str]) -> None:
        super().__init__()
        self._program, self._configuration, self._rules = Path(program), configuration, rules

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        for name, text in {"prometheus.yml": self._configuration, **self._rules}.items():
            file = self.folder / name
            file.parent.mkdir(exist_ok=True)
            file.parent.chmod(0o755)
            file.write_text(text)
            file.chmod(0o644)  # the folder is closed to others; the server's account must read it

    def command(self) -> Sequence[str | Path]:
        return [
            self._program,
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{self.port}",
        ]

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=ANSWER_SECONDS, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def wipe(self) -> None:
        raise NotImplementedError("each test starts its own")

    def ask(self, path: str, **parameters: str) -> Any:
        """What its HTTP API answers. Raises `AssertionError` with its own words when it does not like the question."""
        answer = httpx.get(
            f"{self.url}/api/v1/{path}", params=parameters, timeout=ANSWER_SECONDS, trust_env=False
        ).json()
        assert answer["status"] == "success", f"{parameters}: {answer['error']}"
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self.ask("query", query=expression)["result"]


def promtool(program: str, *arguments: str | Path) -> str:
    """The checker that comes with the server; what it printed. Raises `AssertionError` when it finds a fault."""
    command = [str(Path(program).with_name("promtool")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
