"""Where the contestants of `sessions` stand: files, or a server that the tests' harness starts; a place for each."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Protocol

from tests.servers.locate import MARIADB, POSTGRES, REDIS, Kind, Missing, locate_program
from tests.servers.server import Server

Durability = dict[str, str]


class Store(Protocol):
    name: ClassVar[str]

    def place(self, number: int) -> str:
        """A path or a URL of something new and empty, for the contestant of this number."""
        ...

    def size(self, place: str) -> int:
        """Bytes that rest there."""
        ...

    def durability(self, place: str) -> Durability:
        """What the server does about each write; the same for all that stand on it. {} where each decides itself."""
        ...


class Files:
    """SQLite: everyone a file on the same disk."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place(self, number: int) -> str:
        return str(Path(self._folder, f"{len(list(self._folder.iterdir()))}-{number}.db"))

    def size(self, place: str) -> int:
        """Database and write-ahead log after a checkpoint, made on a copy: the store under test is left as it is."""
        with TemporaryDirectory(prefix="bench-size-") as folder:
            copy = Path(folder) / "copy.db"
            for suffix in ("", "-wal"):
                if (source := Path(f"{place}{suffix}")).exists():
                    shutil.copyfile(source, f"{copy}{suffix}")
            with closing(sqlite3.connect(copy)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return sum(file.stat().st_size for file in Path(folder).iterdir())

    def durability(self, place: str) -> Durability:
        return {}


class OneRedis:
    """One server, append-only file synced every second (Redis's own default); everyone a database of its own."""

    name = "redis"

    def __init__(self, server: Server) -> None:
        from redis import Redis

        self._server, self._client = server, Redis.from_url

    def place(self, number: int) -> str:
        url = f"{self._server.url.rpartition('/')[0]}/{number}"
        with self._client(url) as client:
            client.flushdb()
        return url

    def size(self, place: str) -> int:
        """Of keys and values in memory, by the server's own count."""
        with self._client(place) as client:
            return sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(count=1_000))

    def durability(self, place: str) -> Durability:
        with self._client(place, decode_responses=True) as client:
            return {name: client.config_get(name)[name] for name in ("appendonly", "appendfsync")}


class _OneDatabaseServer:
    """One server; everyone a database of its own on it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._made = 0

    def place(self, number: int) -> str:
        self._made += 1
        name = f"bench_{self._made}"
        self._run(f"CREATE DATABASE {name}")
        return f"{self._server.url.rpartition('/')[0]}/{name}"

    def _run(self, statement: str, url: str | None = None) -> Any:
        raise NotImplementedError


SIZE_OF_TABLES = "SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_stat_user_tables"


class OnePostgres(_OneDatabaseServer):
    name = "postgres"

    def _run(self, statement: str, url: str | None = None) -> Any:
        from tests.servers.waiting import run_coroutine

        return run_coroutine(_asked_postgres(url or self._server.url, statement))

    def size(self, place: str) -> int:
        return int(self._run(SIZE_OF_TABLES, place))

    def durability(self, place: str) -> Durability:
        return {name: self._run(f"SHOW {name}", place) for name in ("fsync", "synchronous_commit")}


async def _asked_postgres(url: str, statement: str) -> Any:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


SIZE_OF_DATA = (
    "SELECT coalesce(sum(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = "
)


class OneMariaDb(_OneDatabaseServer):
    name = "mariadb"

    def _run(self, statement: str, url: str | None = None) -> Any:
        from tests.servers.waiting import run_coroutine

        return run_coroutine(_asked_mariadb(url or self._server.url, statement))

    def size(self, place: str) -> int:
        return int(self._run(f"{SIZE_OF_DATA}'{place.rpartition('/')[2]}'", place))

    def durability(self, place: str) -> Durability:
        names = ("innodb_flush_log_at_trx_commit", "sync_binlog")
        return {name: str(self._run(f"SELECT @@{name}", place)) for name in names}


async def _asked_mariadb(url: str, statement: str) -> Any:
    from tests.servers.mariadb import _connect

    connection = await _connect(url, database=None)
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(statement)
            row = await cursor.fetchone()
            return row[0] if row else None
    finally:
        connection.close()


@contextmanager
def files() -> Iterator[Store]:
    with TemporaryDirectory(prefix="bench-sessions-") as folder:
        yield Files(Path(folder))


@contextmanager
def a_redis() -> Iterator[Store]:
    from tests.servers.redis import RedisServer

    with RedisServer(_program(REDIS), appendonly=True) as server:
        yield OneRedis(server)


@contextmanager
def a_postgres() -> Iterator[Store]:
    from tests.servers.postgres import PostgresServer

    with PostgresServer(_program(POSTGRES)) as server:
        yield OnePostgres(server)


@contextmanager
def a_mariadb() -> Iterator[Store]:
    from tests.servers.mariadb import MariaDbServer

    with MariaDbServer(_program(MARIADB)) as server:
        yield OneMariaDb(server)


@contextmanager
def started(name: str) -> Iterator[str]:
    """The URL of an empty server of this kind."""
    with OPEN[name]() as store:
        yield store.place(0)


OPEN: dict[str, Callable[[], Any]] = {
    "sqlite": files,
    "redis": a_redis,
    "postgres": a_postgres,
    "mariadb": a_mariadb,
    "adk": files,
    "adk-redis": a_redis,
}
_KINDS = {"redis": REDIS, "postgres": POSTGRES, "mariadb": MARIADB, "adk-redis": REDIS}


def missing(names: Sequence[str]) -> dict[str, str]:
    """Why, of those that cannot be started here."""
    found = {name: locate_program(_KINDS[name]) for name in names if name in _KINDS}
    return {name: what.reason for name, what in found.items() if isinstance(what, Missing)}


def _program(kind: Kind) -> str:
    found = locate_program(kind)
    if isinstance(found, Missing):
        raise SystemExit(str(found))
    return found.place
