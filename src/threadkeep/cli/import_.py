"""`threadkeep import langgraph`: take over the threads of LangGraph's own savers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from threadkeep.cli.options import Json, Tenant, Url
from threadkeep.cli.output import print_json, print_pairs, screen
from threadkeep.settings import load_settings

import_ = typer.Typer(name="import", no_args_is_help=True, help="Take over what other libraries have stored.")


@import_.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction]
    """So that the command is `import langgraph`, also while it is the only one."""


@import_.command()
def langgraph(
    source: Annotated[str, typer.Option("--from", help="sqlite:///path.db, postgresql://… or mysql://…")],
    url: Url = None,
    tenant: Tenant = None,
    user: Annotated[str | None, typer.Option(help="Whose threads they become. Otherwise see --user-key.")] = None,
    user_key: Annotated[str, typer.Option(help="The key of a checkpoint's metadata that names the user.")] = "user_id",
    json: Json = False,
) -> None:
    """Copy every thread of a langgraph-checkpoint-sqlite, -postgres or -mysql database, and compare. Safe to repeat."""
    done = asyncio.run(_import(source, url, tenant, (user, user_key)))
    if json:
        print_json(done)
    else:
        problems = done.pop("problems")
        print_pairs("Imported and compared", done)
        for thread, problem in problems.items():
            screen().print(f"{thread!r}: {problem}", markup=False)
    if not done["complete"]:
        raise typer.Exit(1)


async def _import(source: str, url: str | None, tenant: str | None, owner: tuple[str | None, str]) -> dict[str, Any]:
    from threadkeep.adapters.langgraph import ThreadkeepSaver  # needs an extra
    from threadkeep.adapters.langgraph.importing import Owners, import_threads

    settings = load_settings()
    where = url or settings.database_url
    async with ThreadkeepSaver.from_url(where, tenant=tenant, settings=settings) as saver:
        done = await import_threads(source, saver, Owners(*owner))
    return {
        "threads": done.threads,
        "checkpoints": done.checkpoints,
        "writes": done.writes,
        "complete": done.complete,
        "problems": done.problems,
    }
