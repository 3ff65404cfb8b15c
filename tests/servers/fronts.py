"""Shared servers forget between tests which Redis stands in front of which archive."""

from __future__ import annotations

import asyncio
from typing import Any

_FRONT = "threadkeep:*journal:front"


class SharedFronts:
    """The servers that live for the session. An archive keeps its hot store only within one test."""

    def __init__(self) -> None:
        self._redis: list[Any] = []
        self._databases: list[str] = []

    def of_redis(self, *urls: str) -> None:
        from tests.servers.redis import client

        self._redis += [client(url) for url in urls]

    def of_database(self, url: str) -> None:
        self._databases.append(url)

    def forget(self, *, attached: bool) -> None:
        """`attached`: a Redis of the test's own may have been put in front of a shared database."""
        for redis in self._redis:
            from redis.exceptions import RedisError

            try:
                for key in redis.keys(_FRONT):  # one by one: on a node of a cluster they are in many slots
                    attached = bool(redis.delete(key)) or attached
            except RedisError:  # killed by the test, and empty when it is back
                attached = True
        if attached and self._databases:
            from tests.contract.sql_statements import execute

            for url in self._databases:
                try:
                    asyncio.run(execute(url, "DELETE FROM tk_front"))
                except Exception:
                    continue
