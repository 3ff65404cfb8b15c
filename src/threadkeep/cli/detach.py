"""`threadkeep detach`: free an archive from its Redis, to change it, its mode, or to do without one."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Redis, Url, of_an_existing_store
from threadkeep.cli.output import print_json, screen
from threadkeep.compose.upkeep import detach as detach_stores
from threadkeep.errors import InvalidInput


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
        _ask(as_json=json)
    done = asyncio.run(detach_stores(url, redis, settings, lost=lost))
    if json:
        print_json(done.as_dict())
    elif done.archive:
        screen().print(f"The Redis at {done.address} ({done.durability}) no longer stands in front of this archive.")
    elif done.redis:
        screen().print("The Redis is free; this archive had none.")
    else:
        screen().print("Nothing was attached.")


def _ask(*, as_json: bool) -> None:
    if as_json:
        raise InvalidInput("--yes", "is missing", "with --json there is no prompt: confirm with --yes")
    typer.confirm("Give up whatever that Redis had queued? It cannot be undone", abort=True, err=True)
