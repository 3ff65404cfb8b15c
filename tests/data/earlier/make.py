"""Make the files beside this one, with the version of Threadkeep that PYTHONPATH names: see README.md.

PYTHONPATH=<its src>:. .venv/bin/python -m tests.data.earlier.make
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.contract.sql_statements import execute
from tests.data.earlier import reading, write
from tests.servers.locate import MARIADB, POSTGRES, REDIS
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.provide import need_program
from tests.servers.redis import RedisServer, client
from tests.servers.server import OwnedServer

HERE = Path(__file__).parent


def main() -> None:
    os.environ.update(write.ENVIRONMENT)
    for kind in sys.argv[1:] or ("sqlite", "postgres", "mariadb"):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            if kind == "sqlite":
                for store in ("sqlite", "sqlite_queued"):
                    _make(store, kind, f"sqlite:///{name}/{store}.db", Path(name))
            else:
                with _server(kind) as server:
                    _make(kind, kind, server.url, Path(name))
                    server.wipe()
                    _make(f"{kind}_queued", kind, server.url, Path(name))
            os.chdir("/")


def _server(kind: str) -> OwnedServer:
    return PostgresServer(need_program(POSTGRES)) if kind == "postgres" else MariaDbServer(need_program(MARIADB))


def _make(name: str, kind: str, url: str, folder: Path) -> None:
    if name.endswith("queued"):
        with RedisServer(need_program(REDIS)) as redis:
            asyncio.run(write.write_behind_redis(url, redis.url))
            _save(f"{name}_redis.json", _json(_commands(redis.url)))
    else:
        written = asyncio.run(write.write(url, folder)) | {"api_key": _new_key(url)}
        _save(f"{name}.json", _json(asyncio.run(reading.everything(url)) | {"written": written}))
    if kind == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
        (HERE / f"{name}.db.gz").write_bytes(
            gzip.compress(Path(url.removeprefix("sqlite:///")).read_bytes(), 9, mtime=0)
        )
    else:
        _save(f"{name}.sql", _dump_of_postgres(url) if kind == "postgres" else asyncio.run(_dump_of_mariadb(url)))


def _new_key(url: str) -> str:
    command = ["keys", "create", "--url", url, "--tenant", "shop", "--user", "ann", "--name", "fixture", "--json"]
    made = subprocess.run([sys.executable, "-m", "threadkeep.cli", *command], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(made)["key"]


def _save(name: str, text: str) -> None:
    (HERE / name).write_text(text)


def _json(value: Any) -> str:
    """One entry a line."""
    pairs = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    lines = [
        ("" if name is None else f"{json.dumps(name)}: ") + json.dumps(one, ensure_ascii=False, sort_keys=True)
        for name, one in pairs
    ]
    return ("{\n%s\n}\n" if isinstance(value, dict) else "[\n%s\n]\n") % ",\n".join(lines)


def _dump_of_postgres(url: str) -> str:
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    pg_dump = Path(need_program(POSTGRES)).with_name("pg_dump")
    text = subprocess.run([pg_dump, *options, url], check=True, stdout=subprocess.PIPE, text=True).stdout
    left_out = ("--", "\\", "SET ", "CREATE SCHEMA public")
    lines = [line for line in text.splitlines() if line and not line.startswith(left_out)]
    return "\n".join(lines) + "\n"


async def _dump_of_mariadb(url: str) -> str:
    database = urlsplit(url).path.removeprefix("/")
    lines: list[str] = []
    tables = await execute(
        url, "SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY 1"
    )
    for (table,) in tables:
        ((_, made),) = await execute(url, f"SHOW CREATE TABLE `{table}`")
        lines.append(" ".join(made.split("\n")))
        columns = await execute(
            url,
            "SELECT column_name, data_type, extra FROM information_schema.columns"
            f" WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position",
        )
        kept = [(name, kind) for name, kind, extra in columns if "GENERATED" not in extra.upper()]
        names = ", ".join(f"`{name}`" for name, _ in kept)
        values = ", ', ', ".join(_literal(name, kind) for name, kind in kept)
        for (row,) in await execute(url, f"SELECT CONCAT({values}) FROM `{table}` ORDER BY 1"):
            lines.append(f"INSERT INTO `{table}` ({names}) VALUES ({row})")
    return ";\n".join(lines) + ";\n"


def _literal(name: str, kind: str) -> str:
    if "binary" in kind or "blob" in kind:
        return f"IF(`{name}` IS NULL, 'NULL', CONCAT('X''', HEX(`{name}`), ''''))"
    return f"REPLACE(QUOTE(`{name}`), '\\n', '\\\\n')"


def _commands(url: str) -> list[list[Any]]:
    with client(url) as redis:
        commands: list[list[Any]] = []
        for key in sorted(redis.scan_iter(count=1_000)):
            commands += _making(redis, key)
            if (left := redis.pttl(key)) > 0:
                commands.append(["PEXPIRE", key, left])
    return [[_plain(part) for part in command] for command in commands]


def _making(redis: Any, key: bytes) -> list[list[Any]]:
    match redis.type(key):
        case b"string":
            return [["SET", key, redis.get(key)]]
        case b"hash":
            return [["HSET", key, *(part for pair in sorted(redis.hgetall(key).items()) for part in pair)]]
        case b"list":
            return [["RPUSH", key, *redis.lrange(key, 0, -1)]]
        case b"set":
            return [["SADD", key, *sorted(redis.smembers(key))]]
        case b"zset":
            return [
                [
                    "ZADD",
                    key,
                    *(part for one, score in redis.zrange(key, 0, -1, withscores=True) for part in (score, one)),
                ]
            ]
        case b"stream":
            added = [
                ["XADD", key, number, *(part for pair in fields.items() for part in pair)]
                for number, fields in redis.xrange(key)
            ]
            groups = redis.xinfo_groups(key)
            return [
                *added,
                *(["XGROUP", "CREATE", key, one["name"], one["last-delivered-id"], "MKSTREAM"] for one in groups),
            ]
        case other:
            raise ValueError(f"{key!r} is a {other!r}")


def _plain(part: Any) -> Any:
    if not isinstance(part, bytes):
        return part
    try:
        return part.decode()
    except UnicodeDecodeError:
        return {"hex": part.hex()}


if __name__ == "__main__":
    main()
