"""What an operator should know about this Redis before trusting it with turns: input for `threadkeep doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient, pairs_in, too_old
from threadkeep.sessions.redis.scripts import TAKES

_NOBODY = Scope("threadkeep", "health", "health")


@dataclass(frozen=True, slots=True)
class Finding:
    """`problem` must be mended; `warning` may cost acknowledged turns; `note` is for information."""

    code: str
    severity: Literal["problem", "warning", "note"]
    message: str
    fix: str


async def takes_writes(client: RedisClient) -> bool:
    """Whether an append could be written, without writing any; on a cluster, to every partition.

    Raises what an append would be refused with: by a replica, a full server, one that denies it to this user.
    """
    keys = (await client.link()).keys
    conversations = (keys.for_conversation(_NOBODY, tag) for tag in keys.tags)
    await asyncio.gather(*(client.run(TAKES, of, ()) for of in conversations))
    return True


async def inspect(client: RedisClient) -> list[Finding]:
    """Of every server there is. A server that cannot be reached is the only finding then."""
    try:
        facts = await client.facts()
    except StoreUnavailable as error:
        return [Finding("unreachable", "problem", str(error), "start the server, or correct REDIS_URL")]
    except StoreError as error:
        return [_refusal(error)]
    try:
        await takes_writes(client)
        refused: list[Finding] = []
    except StoreError as error:
        refused = [_refusal(error)]
    try:
        answers = await client.on_each_server("CONFIG", "GET", "*")
        settings = [{_text(name): _text(value) for name, value in pairs_in(one).items()} for one in answers]
    except StoreError:  # managed servers often deny it
        settings = [None] * len(facts)
    found = (one for said, config in zip(facts, settings, strict=True) for one in findings(said, config))
    return [*refused, *dict.fromkeys(found)]


def _refusal(error: StoreError) -> Finding:
    """Until it is mended, turns go straight to the archive."""
    problem, _, fix = str(error).partition("; ")
    return Finding("refuses-writes", "problem", problem, fix or "look into the server's log")


def findings(facts: Mapping[str, str], config: Mapping[str, str] | None) -> Iterator[Finding]:
    """Pure, from what `INFO` and `CONFIG GET` said; `config` is None when it was denied."""
    if (version := too_old(facts)) is not None:
        yield Finding(
            "old-server", "problem", f"Redis {version} is older than 7", "upgrade to Redis 7 or newer, or Valkey"
        )
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        message = f"maxmemory-policy {policy} may evict journal entries and counters"
        yield Finding("evicting-policy", "problem", message, "set maxmemory-policy noeviction")
    appending = facts.get("aof_enabled") == "1"
    if config is None:
        message = "the server does not show its settings (CONFIG is denied)"
        yield Finding("settings-hidden", "note", message, "check appendonly, appendfsync and save by hand")
    else:
        yield from _of_settings(config, appending)


def _of_settings(config: Mapping[str, str], appending: bool) -> Iterator[Finding]:
    fsync = config.get("appendfsync", "")
    if appending and fsync != "always":
        message = f"appendfsync {fsync}: a crash loses up to the last second of queued turns"
        yield Finding("appendfsync", "warning", message, "set appendfsync always, or use the durable mode")
    elif not appending and config.get("save"):
        message = "only snapshots are kept: a crash loses all queued turns since the last one"
        yield Finding("no-append-only-file", "warning", message, "set appendonly yes and appendfsync always")
    elif not appending:
        message = "nothing is kept on disk: a restart loses every queued turn"
        yield Finding("no-persistence", "warning", message, "set appendonly yes and appendfsync always")


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_SECONDS_BETWEEN = 600
_ELSEWHERE = "in snapshots, replicas and backups until those are replaced"
_IN_THE_LOG = (
    f"Redis keeps what was erased in its append-only file until the next rewrite (BGREWRITEAOF), and {_ELSEWHERE}"
)
_IN_SNAPSHOTS = f"Redis keeps what was erased {_ELSEWHERE}"
_REWRITING = (
    "a rewrite of the append-only file was requested: Redis keeps what was erased there until it ends,"
    f" and {_ELSEWHERE}"
)


class RedisRemains:
    """`rewrite`: ask for a rewrite after an erasure, at most once in ten minutes for all processes together."""

    def __init__(self, client: RedisClient, *, rewrite: bool = False) -> None:
        self._client = client
        self._rewrite = rewrite

    async def __call__(self) -> tuple[str, ...]:
        """Return a note for the receipt. A server that does not answer is assumed to keep a log."""
        try:
            appending = any(one.get("aof_enabled") == "1" for one in await self._client.facts("persistence"))
            if not appending:
                return (_IN_SNAPSHOTS,)
            return (_REWRITING if self._rewrite and await self._rewrite_begun() else _IN_THE_LOG,)
        except StoreError:
            return (_IN_THE_LOG,)

    async def _rewrite_begun(self) -> bool:
        """Of every primary. Raise `StoreError` where this user may not, or one is at it already."""
        keys = (await self._client.link()).keys
        mark = f"{keys.journal(keys.tags[0])}:rewrite"
        if not await self._client.command("SET", mark, "1", "NX", "EX", _SECONDS_BETWEEN):
            return False
        await self._client.on_each_server("BGREWRITEAOF")
        return True
