"""`threadkeep retention run`, `migrate` and `detach`: upkeep of the stores, and what a service deletes daily."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Redis, Url, of_an_existing_store
from threadkeep.cli.output import confirm, print_json, print_pairs, screen
from threadkeep.compose.upkeep import SchemaReport, check_schema, migrate_schema, open_retention, retain_daily
from threadkeep.compose.upkeep import detach as detach_stores
from threadkeep.errors import MissingExtra
from threadkeep.ports.threads import Retained
from threadkeep.settings import Settings, load_settings

retention = typer.Typer(name="retention", no_args_is_help=True, help="Delete what has been kept long enough.")


@retention.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction]
    """So that the command is `retention run`, also while it is the only one."""


@retention.command()
def run(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete also where far more would go than a run usually deletes.")
    ] = False,
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Expire idle threads, delete expired ones, and delete old turns and memories. Safe to repeat and to interrupt."""
    done, swept = asyncio.run(_run(url, redis, of_an_existing_store(url), dry_run=dry_run, force=force))
    if json:
        print_json(asdict(done) | {"abandoned": swept, "dry_run": dry_run})
        return
    told = {
        "threads expired": done.expired,
        "threads deleted": done.deleted,
        "turns deleted": done.turns,
        "memories forgotten": done.memories,
        "rows of sessions and items": done.rows,
        "abandoned turns of graphs ended": swept,
    }
    print_pairs("Would go" if dry_run else "Gone", told)


async def _run(
    url: str | None, redis: str | None, settings: Settings, *, dry_run: bool, force: bool
) -> tuple[Retained, int]:
    async with open_retention(url, redis=redis, settings=settings) as opened:
        done = await opened.run(dry_run=dry_run, force=force)
    return done, await sweep_turns(url, settings, dry_run=dry_run)


@asynccontextmanager
async def retaining_daily(url: str | None, settings: Settings, redis: str | None = None) -> AsyncGenerator[None]:
    """Any number of processes may do so on one store."""
    retaining = asyncio.create_task(retain_daily(url, settings, also=partial(sweep_turns, url, settings), redis=redis))
    try:
        yield
    finally:
        retaining.cancel()
        await asyncio.gather(retaining, return_exceptions=True)


async def sweep_turns(url: str | None, settings: Settings, *, dry_run: bool = False) -> int:
    """How many were abandoned for a day and have been ended, or would be. 0 where LangGraph is not installed."""
    try:
        # takes a second, in which a service would answer no request
        adapter = await asyncio.to_thread(import_module, "threadkeep.adapters.langgraph")
    except MissingExtra:
        return 0
    where = url or settings.database_url
    async with adapter.ThreadkeepSaver.from_url(where, tool_traffic="turn", settings=settings) as saver:
        return await saver.asweep_turns(dry_run=dry_run)


def migrate(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 1 if there is work to do.")] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Bring the store's tables up to date. Safe to repeat, and to run by several processes at once."""
    settings = load_settings()
    work = check_schema if check else migrate_schema
    report = asyncio.run(work(url or settings.database_url, settings))
    if json:
        print_json(asdict(report))
    else:
        screen().print(_described(report))
    if not report.up_to_date:
        raise typer.Exit(1)


def _described(report: SchemaReport) -> str:
    if report.found == report.newest:
        return f"The tables are up to date ({report.newest})."
    found = report.found or "no tables yet"
    if report.up_to_date:
        return f"The tables were brought up to date: {found} → {report.newest}."
    return f"The tables are not up to date ({found}; this version needs {report.newest}): run `threadkeep migrate`."


def detach(
    url: Url = None,
    redis: Redis = None,
    lost: Annotated[
        bool, typer.Option("--lost", help="The Redis is lost for good; what it had queued is given up.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about --lost.")] = False,
    json: Json = False,
) -> None:
    """Detach the Redis from the archive once its journal is empty. Stop the other processes first: the next one that
    opens both attaches them again, in its own mode."""
    settings = of_an_existing_store(url)
    if lost and not yes:
        confirm("Give up whatever that Redis had queued? It cannot be undone", as_json=json)
    done = asyncio.run(detach_stores(url, redis, settings, lost=lost))
    if json:
        print_json(asdict(done))
    elif done.archive:
        screen().print(f"The Redis at {done.address} ({done.durability}) no longer stands in front of this archive.")
    elif done.redis:
        screen().print("The Redis is free; this archive had none.")
    else:
        screen().print("Nothing was attached.")
