"""A real Redis (or Valkey)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from tests.servers.ports import LOOPBACK
from tests.servers.process import within_reach
from tests.servers.server import OwnedServer

Fsync = Literal["always", "everysec", "no"]
ANSWER_SECONDS = 5


class RedisServer(OwnedServer):
    """Keeps nothing across a kill unless `appendonly`; with `appendfsync="always"`, every acknowledged write."""

    name = "redis"

    def __init__(
        self, program: str, *, appendonly: bool = False, appendfsync: Fsync = "everysec", settings: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._installed = self._program = Path(program)
        self._settings = [
            *("--appendonly", "yes" if appendonly else "no"),
            *("--appendfsync", appendfsync),
            *settings,
        ]

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        here = self._installed
        self._program = within_reach(here, here.parent, [here.name], self.folder)

    def command(self) -> Sequence[str | Path]:
        place = ["--bind", LOOPBACK, "--port", str(self.port), "--dir", str(self.folder)]
        return [self._program, *place, "--save", "", *self._settings]

    def answers(self) -> bool:
        try:
            with client(self.url) as redis:
                return bool(redis.ping())
        except RedisError:  # also "LOADING" while it reads its append-only file
            return False

    def wipe(self) -> None:
        with client(self.url) as redis:
            redis.flushall()


def wipe_database(url: str) -> None:
    """Empty only the database the URL names: the others on somebody's server are not ours."""
    with client(url) as redis:
        redis.flushdb()


def client(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0))
