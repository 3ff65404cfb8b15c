"""A real MariaDB."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncmy
from asyncmy.errors import MySQLError

from tests.servers.ports import LOOPBACK
from tests.servers.process import run_to_end
from tests.servers.server import OwnedServer
from tests.servers.waiting import run_coroutine

USER, PASSWORD, DATABASE = "threadkeep", "loopback-only", "threadkeep"
ANSWER_SECONDS = 5
# The server's usual collation ignores case and accents. It stays, because our users' servers have it:
# a table that forgets to ask for a binary one must fail a test here.
DEFAULTS = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"


class MariaDbServer(OwnedServer):
    name = "mariadb"

    def __init__(self, program: str, **settings: str) -> None:
        """`settings` are the server's variables under their own names: `max_connections="25"`."""
        super().__init__()
        self._program = program
        self._settings = settings

    @property
    def url(self) -> str:
        return f"mysql://{USER}:{PASSWORD}@{LOOPBACK}:{self.port}/{DATABASE}"

    def prepare(self) -> None:
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", self._tmpdir]
        run_to_end(["mariadb-install-db", "--no-defaults", f"--datadir={self._data}", *options], self.folder)
        first_words = self.folder / "first_words.sql"
        first_words.write_text(
            f"CREATE DATABASE IF NOT EXISTS {DATABASE} {DEFAULTS};\n"
            f"CREATE USER IF NOT EXISTS '{USER}'@'{LOOPBACK}' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'{LOOPBACK}' WITH GRANT OPTION;\n"
            "ALTER USER root@localhost ACCOUNT LOCK;\n"
        )
        first_words.chmod(0o644)  # the folder is closed to others; the server's account must read it

    def command(self) -> Sequence[str | Path]:
        return [
            self._program,
            "--no-defaults",
            f"--datadir={self._data}",
            self._tmpdir,
            f"--bind-address={LOOPBACK}",
            f"--port={self.port}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--init-file={self.folder / 'first_words.sql'}",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=2",  # written at each commit, so a SIGKILL loses nothing; no fsync
            "--innodb-buffer-pool-size=32M",
            *(f"--{name}={value}" for name, value in self._settings.items()),
        ]

    def answers(self) -> bool:
        return run_coroutine(_answers(self.url))

    def wipe(self) -> None:
        wipe_database(self.url)

    @property
    def _tmpdir(self) -> str:
        """A server that starts removes the temporary tables of all others in /tmp."""
        return f"--tmpdir={self.folder}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"


async def _connect(url: str, *, database: str | None) -> asyncmy.Connection:
    there = urlsplit(url)
    return await asyncmy.connect(
        host=there.hostname or LOOPBACK,
        port=there.port or 3306,
        user=unquote(there.username or ""),
        password=unquote(there.password or ""),
        database=database,
        connect_timeout=ANSWER_SECONDS,
        autocommit=True,
    )


async def _answers(url: str) -> bool:
    try:
        connection = await _connect(url, database=_database_of(url))
    except (OSError, TimeoutError, MySQLError):
        return False
    async with connection, connection.cursor() as cursor:
        await cursor.execute("SELECT 1")
        return await cursor.fetchone() == (1,)


def wipe_database(url: str) -> None:
    """Drop the URL's database and create it anew, with the same lax collation."""
    run_coroutine(_recreate(url))


async def _recreate(url: str) -> None:
    database = _database_of(url)
    connection = await _connect(url, database=None)
    async with connection, connection.cursor() as cursor:
        # A transaction some test left open fails the wipe by name instead of hanging it.
        await cursor.execute(f"SET lock_wait_timeout = {ANSWER_SECONDS}")
        await cursor.execute(f"DROP DATABASE IF EXISTS `{database}`")
        await cursor.execute(f"CREATE DATABASE `{database}` {DEFAULTS}")


def _database_of(url: str) -> str:
    return os.path.basename(urlsplit(url).path)
