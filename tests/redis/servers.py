"""Time that passes for a server too: its keys age by as much as the test's clock moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.servers.redis import client
from threadkeep.testing.clock import FakeClock


def nodes_of(server: Any) -> list[str]:
    return [node.url for node in getattr(server, "nodes", [server])]


class AgeingClock(FakeClock):
    """`advance` takes the seconds off the TTL of every key, so that real expiry is what ends a session."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        self._urls = urls

    def advance(self, seconds: float) -> datetime:
        for url in self._urls:
            with client(url) as redis:
                keys, ask, age = list(redis.scan_iter(count=1_000)), redis.pipeline(False), redis.pipeline(False)
                for key in keys:
                    ask.pttl(key)
                for key, left in zip(keys, ask.execute(), strict=True):
                    if left >= 0:
                        age.pexpire(key, max(0, left - int(seconds * 1_000)))
                age.execute()
        return super().advance(seconds)
