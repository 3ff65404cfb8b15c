"""`threadkeep retention run`: delete what has been kept long enough, or only say what that would be."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Redis, Url, as_it_is, store_path
from threadkeep.cli.output import print_json, print_pairs
from threadkeep.cli.resolved import shown_path
from threadkeep.cli.sweeping import sweep_turns
from threadkeep.compose.upkeep import open_retention
from threadkeep.errors import NotFound
from threadkeep.ports.usage import Retained
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
    settings = load_settings()
    path = store_path(url, settings)
    if path is not None and not path.exists():
        raise NotFound(f"{shown_path(path)}: there is no store here; check --url or DATABASE_URL")
    done, swept = asyncio.run(_run(url, redis, as_it_is(settings), dry_run=dry_run, force=force))
    if json:
        print_json(asdict(done) | {"abandoned": swept, "dry_run": dry_run})
        return
    title = "Would go" if dry_run else "Gone"
    told = {"threads expired": done.expired, "threads deleted": done.deleted, "turns deleted": done.turns}
    print_pairs(
        title,
        told
        | {
            "memories forgotten": done.memories,
            "rows of sessions and items": done.rows,
            "abandoned turns of graphs ended": swept,
        },
    )


async def _run(
    url: str | None, redis: str | None, settings: Settings, *, dry_run: bool, force: bool
) -> tuple[Retained, int]:
    async with open_retention(url, redis=redis, settings=settings) as opened:
        done = await opened.run(dry_run=dry_run, force=force)
    return done, await sweep_turns(url, settings, dry_run=dry_run)
