"""`threadkeep doctor`: the settings as they came out, whether the stores answer, and what to look at."""

from __future__ import annotations

import asyncio
import platform
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import typer

from threadkeep import __version__
from threadkeep.cli.options import Json, Mapping, Redis, Url, as_it_is, store_path
from threadkeep.cli.output import in_columns, print_json, print_pairs, screen
from threadkeep.cli.resolved import Resolved, masked, resolve, shown_path
from threadkeep.compose.memory import memory_to_look_at, redis_named
from threadkeep.compose.upkeep import (
    check_terms,
    inspect_mapped,
    inspect_redis,
    inspect_server,
    named_config,
    problem_with_chroma,
)
from threadkeep.compose.vectors import uses_chroma
from threadkeep.errors import SchemaOutdated, StoreReadOnly, StoreUnavailable, ThreadkeepError
from threadkeep.model import Stats
from threadkeep.ports.health import Health
from threadkeep.settings import Settings, config_file, load_settings, unknown_variables

_FTS5_SECURE_DELETE = (3, 42, 0)


def doctor(url: Url = None, redis: Redis = None, mapping: Mapping = None, json: Json = False) -> None:
    """Show every setting and where it came from, and check the stores. Exit code 1: one of them will not do."""
    settings = load_settings()
    found = resolve(settings)
    hot = redis_named(redis, settings)
    redis_found = redis_described(hot, settings)
    mapped = mapped_described(url, mapping, settings)
    chroma = chroma_described(settings)
    starts = may_start_with(redis_found)
    store, health = _store(url, hot if starts else None, settings, only_mapped=mapped is not None)
    health = health if starts else None  # without the Redis that it was given, no process would be in this state
    report: dict[str, Any] = {
        "ok": store["status"] != "failed"
        and (health is None or health["status"] != "down")
        and all(one is None or one["ok"] for one in (redis_found, mapped, chroma)),
        "threadkeep": __version__,
        "python": platform.python_version(),
        "config_file": str(config_file()) if config_file().is_file() else None,
        "settings": {one.name: {"value": one.value, "source": one.source} for one in found},
        "store": store,
        "redis": redis_found,
        "mapped": mapped,
        "chroma": chroma,
        "health": health,
        "sqlite": _sqlite(),
    }
    report["warnings"] = _warnings(report, url)
    if json:
        print_json(report)
    else:
        _print(report, found)
    if not report["ok"]:
        raise typer.Exit(1)


def _store(
    url: str | None, redis: str | None, settings: Settings, *, only_mapped: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The archive, and how all stores are. One that is not there yet is left that way: looking must not create it.

    Where tables are mapped, it is no fault that there are none of our own.
    """
    where = url or settings.database_url
    shown = {"url": masked(where), "error": None}

    async def looked_at() -> tuple[Stats, Health]:
        async with memory_to_look_at(where, redis, as_it_is(settings)) as memory:
            return await memory.stats(), await memory.health()

    try:
        path = store_path(url, settings)
        if path is not None and not path.exists():
            _check_it_can_be_made(path)
            made = {"status": "not created yet", "next": "the first process that opens it makes it"}
            return shown | made | {"path": shown_path(path.resolve())}, None
        server = asyncio.run(inspect_server(where, settings))
        facts = {} if server is None else {"server": asdict(server)}
        coming = migrated_next(facts, settings)
        obstacle = facts["server"]["obstacle"] if facts else None
        if obstacle and not (coming and obstacle["code"] == "schema_outdated"):
            kind = SchemaOutdated if obstacle["code"] == "schema_outdated" else StoreReadOnly
            raise kind(f"{shown['url']}: {obstacle['message']}; {obstacle['fix']}")
        if only_mapped and facts and facts["server"]["schema"] is None:
            return shown | {"status": "no tables of its own"} | facts, None
        if coming:
            return shown | coming | facts, None
        counted, health = asyncio.run(looked_at())
        terms = asyncio.run(check_terms(where, as_it_is(settings)))
    except ThreadkeepError as error:
        return shown | {"status": "failed", "error": {"code": error.code, "detail": str(error)}}, None
    if path is not None:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        facts = {"path": shown_path(path.resolve()), "journal_mode": mode}
    return shown | {"status": "reachable", "terms": terms.as_dict()} | facts | counted.as_dict(), health.as_dict()


def _check_it_can_be_made(path: Path) -> None:
    """Raise `StoreUnavailable` where neither the file nor its folder could be.

    A folder is made beside them and removed at once: access rights alone say nothing of `/proc` or root.
    """
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise StoreUnavailable(f"{shown_path(path)}: {shown_path(nearest)} is no folder; correct --url or DATABASE_URL")
    try:
        Path(mkdtemp(prefix=".threadkeep-", dir=nearest)).rmdir()
    except OSError as error:
        problem = f"{shown_path(nearest)} takes no new folder or file ({type(error).__name__})"
        raise StoreUnavailable(f"{shown_path(path)}: {problem}; correct --url or DATABASE_URL") from error


def _sqlite() -> dict[str, Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
        secure_delete = connection.execute("PRAGMA secure_delete = ON").fetchone()[0] == 1
    return {
        "version": sqlite3.sqlite_version,
        "fts5": "ENABLE_FTS5" in options,
        "secure_delete": secure_delete,
        "fts5_secure_delete": sqlite3.sqlite_version_info >= _FTS5_SECURE_DELETE,
    }


def _warnings(report: dict[str, Any], url: str | None) -> list[str]:
    warnings = [f"{name} is not a setting; it has no effect" for name in unknown_variables()]
    store, sqlite = report["store"], report["sqlite"]
    if not sqlite["fts5"]:
        warnings.append("this SQLite has no FTS5: recall cannot work")
    if not sqlite["secure_delete"]:
        warnings.append("this SQLite cannot overwrite what it deletes: erase leaves bytes behind")
    if url is None and report["settings"]["DATABASE_URL"]["source"] == "default":
        warnings.append("DATABASE_URL is not set: the store's path depends on the current folder")
    if "terms" in store and not store["terms"]["up_to_date"]:
        warnings.append("messages are found by terms of another version: run `threadkeep index rebuild`")
    path = Path(store["path"]) if "path" in store else None
    if path is not None and path.exists() and path.stat().st_mode & 0o077:
        warnings.append("others on this machine may read the store's file; chmod 600 closes it")
    return warnings + server_warnings(report) + mapped_warnings(report["mapped"]) + chroma_warnings(report["chroma"])


def _print(report: dict[str, Any], found: list[Resolved]) -> None:
    if report["mapped"]:
        print_mapping(report["mapped"])
    table = in_columns("Settings", "setting", "value", "from")
    for one in found:
        table.add_row(one.name, "–" if one.value is None else str(one.value), one.source)
    screen().print(table)
    store = {name: value for name, value in report["store"].items() if value is not None}
    store.pop("terms", None)
    print_pairs("Store", store | store.pop("server", {}))
    if report["redis"]:
        print_pairs("Redis", {name: report["redis"][name] for name in ("url", "version", "cluster")})
    if report["health"] and report["health"]["lag"]:
        print_pairs("Journal", report["health"]["lag"])
    print_pairs("SQLite", report["sqlite"])
    shown = mapped_warnings(report["mapped"])
    for warning in [one for one in report["warnings"] if one not in shown]:
        screen().print(f"! {warning}", style="yellow")
    screen().print(_verdict(report))


def _verdict(report: dict[str, Any]) -> str:
    if report["ok"]:
        health = report["health"]
        if health is None or health["status"] == "ok":
            coming: str | None = report["store"].get("next")
            return f"All is well. {coming[:1].upper()}{coming[1:]}." if coming else "All is well."
        away = [f"{store} is {state}" for store, state in health["stores"].items() if state != "ok"]
        what = ", ".join([one["code"] for one in health["findings"]] or away)
        return f"Degraded: turns are stored, but {what} should be mended."
    if report["store"]["status"] == "failed":
        return "The store cannot be used."
    if report["health"] is not None and report["health"]["status"] == "down":
        return "No turn can be stored."
    verdicts = {
        "mapped": "The mapped tables cannot be used.",
        "redis": "Redis cannot be relied on.",
        "chroma": "Chroma cannot be used.",
    }
    return next(told for name, told in verdicts.items() if report[name] is not None and not report[name]["ok"])


def chroma_described(settings: Settings) -> dict[str, Any] | None:
    """None where vectors are kept beside the messages."""
    if not uses_chroma(settings):
        return None
    problem, place = problem_with_chroma(settings), settings.chroma_path
    return {"place": masked(place) if "://" in place else place, "ok": problem is None, "problem": problem}


def chroma_warnings(chroma: dict[str, Any] | None) -> list[str]:
    if chroma is None or chroma["ok"]:
        return []
    fix = "mend or empty it, or correct CHROMA_PATH; what is missing is made anew"
    return [f"Chroma: {chroma['problem']}; messages are found by their words alone: {fix}"]


def mapped_described(url: str | None, mapping: str | None, settings: Settings) -> dict[str, Any] | None:
    """None where no tables are mapped. `ok` is False where nothing could be stored in them."""
    path = mapping or named_config()
    if path is None and "memory_table_map" not in settings.model_fields_set:
        return None
    described: dict[str, Any] = {"config": path, "enabled": None, "tables": {}, "columns": {}}
    described |= {"misfits": [], "error": None}
    try:
        report = asyncio.run(inspect_mapped(url or settings.database_url, path, settings))
    except ThreadkeepError as error:
        return described | {"ok": False, "error": {"code": error.code, "detail": str(error)}}
    return described | {"ok": report.usable} | asdict(report)


def print_mapping(mapped: dict[str, Any]) -> None:
    """Print which table and column stands for which of ours, and below it what does not fit."""
    table = in_columns("Mapping", "ours", "yours")
    for logical, name in mapped["tables"].items():
        table.add_row(logical, name)
        for field, column in mapped["columns"][logical].items():
            table.add_row(f"  {field}", "–" if column is None else column)
    screen().print(table)
    for warning in mapped_warnings(mapped):
        screen().print(f"! {warning}", style="yellow")


def mapped_warnings(mapped: dict[str, Any] | None) -> list[str]:
    if mapped is None:
        return []
    told = [f"{one['setting']}: {one['problem']}; {one['fix']}" for one in mapped["misfits"]]
    return told + ([mapped["error"]["detail"]] if mapped["error"] else [])


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
    return {"url": masked(redis), "ok": report.usable} | asdict(report)


def may_start_with(redis: dict[str, Any] | None) -> bool:
    """Whether a process that is given this Redis starts, and continues without it while it is unavailable."""
    return redis is None or bool(redis["version"]) or {one["code"] for one in redis["findings"]} <= _UNAVAILABLE


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
