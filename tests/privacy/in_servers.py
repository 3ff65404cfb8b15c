"""The scan for traces, in what servers hold: every column of every table, every key of every kind in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from tests.contract.sql_statements import execute, named_database
from tests.servers.redis import client
from threadkeep.testing.traces import Trace, Traces

_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN"
    " ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys') AND table_type = 'BASE TABLE'"
)
_COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = '{}' AND table_name = '{}'"
    " ORDER BY ordinal_position"
)


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """An empty one on that server, gone afterwards: what other tests left there need not be read."""
    name = f"scanned_{uuid4().hex}"
    asyncio.run(execute(url, f"CREATE DATABASE {name}"))
    try:
        yield named_database(url, name)
    finally:
        forced = " WITH (FORCE)" if url.startswith("postgres") else ""
        asyncio.run(execute(url, f"DROP DATABASE {name}{forced}"))


async def in_database(scan: Traces, url: str) -> set[Trace]:
    """In whatever the server shows of that database, whoever made it."""
    quote = '"' if url.startswith("postgres") else "`"
    own = "" if url.startswith("postgres") else " AND table_schema = database()"
    found: set[Trace] = set()
    for schema, table in await execute(url, _TABLES + own):
        columns = [str(row[0]) for row in await execute(url, _COLUMNS.format(schema, table))]
        names = ", ".join(f"{quote}{column}{quote}" for column in columns)
        rows = await execute(url, f"SELECT {names} FROM {quote}{schema}{quote}.{quote}{table}{quote}")
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                found |= _in_value(scan, f"{table}.{column}", value)
    return found


def in_redis(scan: Traces, url: str) -> set[Trace]:
    """In every key of every database of that server: its name, and whatever it holds."""
    server = url.rpartition("/")[0]
    with client(url) as redis:
        numbers = [int(name.removeprefix("db")) for name in redis.info("keyspace")]
    found: set[Trace] = set()
    for number in numbers:
        with client(f"{server}/{number}") as redis:
            for key in redis.scan_iter(count=1_000):
                place = f"redis {key.decode(errors='replace')}"
                found |= _in_value(scan, place, key) | _in_value(scan, place, _held(redis, key))
    return found


def _held(redis: Any, key: bytes) -> Any:
    kind = redis.type(key).decode()
    read = {
        "string": lambda: redis.get(key),
        "hash": lambda: redis.hgetall(key),
        "list": lambda: redis.lrange(key, 0, -1),
        "set": lambda: redis.smembers(key),
        "zset": lambda: redis.zrange(key, 0, -1, withscores=True),
        "stream": lambda: [redis.xrange(key), redis.xinfo_groups(key)],
        "none": lambda: b"",  # it has expired meanwhile
    }
    return read[kind]()


def _in_value(scan: Traces, place: str, value: object) -> set[Trace]:
    return {Trace(place, form, needle) for data in _flat(value) for form, needle in scan.in_cell(data)}


def _flat(value: object) -> Iterator[bytes]:
    """Every piece by itself, and lists of numbers as they would be written."""
    if isinstance(value, bytes | bytearray | memoryview):
        yield bytes(value)
    elif isinstance(value, Mapping):
        yield from _flat([*value.keys(), *value.values()])
    elif isinstance(value, Iterable) and not isinstance(value, str):
        pieces = list(value)
        if all(isinstance(piece, int) for piece in pieces):
            yield str(pieces).encode()
        else:
            yield from (data for piece in pieces for data in _flat(piece))
    elif value is not None:
        yield str(value).encode("utf-8", "surrogatepass")
