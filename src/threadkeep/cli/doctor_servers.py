"""What `threadkeep doctor` says of servers: the archive's, and Redis with its journal."""

from __future__ import annotations

import asyncio
from typing import Any

from threadkeep.cli.resolved import masked
from threadkeep.compose.inspect import inspect_redis, inspect_server
from threadkeep.errors import ThreadkeepError
from threadkeep.settings import Settings

_UNAVAILABLE = {"unreachable", "refuses-writes"}


def redis_described(redis: str | None, settings: Settings) -> dict[str, Any] | None:
    """None where there is none. `ok` is False for what must be mended before it can be relied on."""
    if redis is None:
        return None
    try:
        report = asyncio.run(inspect_redis(redis, settings))
    except ThreadkeepError as error:
        problem = {"code": error.code, "severity": "problem", "message": str(error), "fix": "correct REDIS_URL"}
        return {"url": masked(redis), "ok": False, "version": None, "cluster": None, "findings": [problem]}
    return {"url": masked(redis), "ok": report.usable} | report.as_dict()


def may_start_with(redis: dict[str, Any] | None) -> bool:
    """Whether a process that is given this Redis starts, and goes on without it while it is unavailable."""
    return redis is None or bool(redis["version"]) or {one["code"] for one in redis["findings"]} <= _UNAVAILABLE


def server_described(url: str, settings: Settings) -> dict[str, Any]:
    """Empty where the archive is on no server."""
    report = asyncio.run(inspect_server(url, settings))
    return {} if report is None else {"server": report.as_dict()}


def migrated_next(described: dict[str, Any], settings: Settings) -> dict[str, str]:
    """What the first process does with the server's tables that are missing or older; empty where it does nothing."""
    if not described or not settings.auto_migrate:
        return {}
    found, newest = described["server"]["schema"], described["server"]["newest_schema"]
    if found is None:
        return {"status": "no tables yet", "next": "the first process that opens it makes them"}
    if found == newest:
        return {}
    return {
        "status": "tables of an older version",
        "next": f"the first process that opens it brings them up to date ({found} → {newest})",
    }


def server_warnings(report: dict[str, Any]) -> list[str]:
    warnings: list[str] = []
    server, redis, health = report["store"].get("server"), report["redis"], report["health"]
    unused = report["store"]["status"] == "no tables of its own" or "next" in report["store"]
    if server and not unused and server["schema"] != server["newest_schema"]:
        warnings.append(f"the tables are at {server['schema'] or 'nothing yet'}: run `threadkeep migrate`")
    for one in redis["findings"] if redis else ():
        if one["severity"] != "note":
            warnings.append(f"Redis: {one['message']}; {one['fix']}")
    return warnings + [f"{one['message']}; {one['fix']}" for one in (health["findings"] if health else ())]
