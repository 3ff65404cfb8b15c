"""A real Chroma server, run from the program its wheel carries."""

from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.servers.ports import LOOPBACK
from tests.servers.server import OwnedServer

ANSWER_SECONDS = 5


class ChromaServer(OwnedServer):
    name = "chroma"
    step_down = False

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = Path(program)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def command(self) -> Sequence[str | Path]:
        return [self._program, "run", "--host", LOOPBACK, "--port", str(self.port), "--path", self.folder / "data"]

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/heartbeat", timeout=ANSWER_SECONDS, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def wipe(self) -> None:
        raise NotImplementedError("each test keeps to a model, and so to a collection, of its own")
