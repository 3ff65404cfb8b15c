"""What an operator should know about this Redis before trusting it with turns: input for `threadkeep doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import OLDEST_SERVER, RedisClient
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
    talks = (keys.for_talk(_NOBODY, tag) for tag in keys.tags)
    await asyncio.gather(*(client.run(TAKES, talk, ()) for talk in talks))
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
        settings = [_settings(one) for one in await client.on_each_server("CONFIG", "GET", "*")]
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
    version = facts.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
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


def _settings(answer: Any) -> dict[str, str]:
    """From names and values in turn, or from the mapping that a driver made of them."""
    if isinstance(answer, Mapping):
        pairs: Iterable[tuple[Any, Any]] = cast("Mapping[Any, Any]", answer).items()
    else:
        pairs = zip(answer[::2], answer[1::2], strict=True)
    return {_text(name): _text(value) for name, value in pairs}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
