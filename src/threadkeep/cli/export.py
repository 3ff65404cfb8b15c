"""`threadkeep export`: everything that is kept, one conversation a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from threadkeep.cli.export_file import export_file
from threadkeep.cli.options import (
    Conversation,
    Json,
    Redis,
    Tenant,
    Url,
    User,
    existing_store,
    scope_or_all,
    store_path,
)
from threadkeep.cli.output import notes, print_json
from threadkeep.http.encoding import encoded
from threadkeep.record import Shape, in_shape
from threadkeep.scope import Scope
from threadkeep.settings import load_settings
from threadkeep.sync import SyncMemory


def export(
    tenant: Tenant = None,
    user: User = None,
    conversation: Conversation = None,
    out: Annotated[
        Path | None, typer.Option(help="A file, complete or not there at all; a device or pipe; otherwise stdout.")
    ] = None,
    format: Annotated[Shape, typer.Option(help="All that is kept, or the shape of memory records.")] = "full",
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Write conversations as NDJSON: of a scope, or of the whole store; what a Redis has queued is flushed first."""
    scope = scope_or_all(tenant, user, conversation)
    with existing_store(url, redis, worker=True) as memory:
        if out is None:
            _write(memory, scope, format, sys.stdout.buffer)
            sys.stdout.flush()
            _given_up_on(memory)
            return
        with export_file(out, store_path(url, load_settings())) as file:
            lines, size = _write(memory, scope, format, file)
        left_out = _given_up_on(memory)
    if json:
        print_json({"out": str(out), "conversations": lines, "bytes": size, "dead_letters": left_out})
    else:
        notes.print(f"{lines} conversations in {out}")


def _given_up_on(memory: SyncMemory) -> int:
    """How many journal entries, of anybody, never reached the archive. Whoever exports is told."""
    lag = memory.health().lag
    if lag and lag.dead:
        notes.print(f"{lag.dead} journal entries were given up on and are not in it: see `threadkeep dlq list`")
    return lag.dead if lag else 0


def _write(memory: SyncMemory, scope: Scope | None, shape: Shape, file: IO[bytes]) -> tuple[int, int]:
    """How many lines, and how many bytes."""
    lines = size = 0
    kept = memory.stats(scope)
    total = kept.conversations + kept.threads.count + kept.sessions + kept.items
    with _progress() as progress:
        task = progress.add_task("Exporting", total=total)
        for record in memory.export(scope):
            if (told := in_shape(record, shape)) is not None:
                size += file.write(encoded(told) + b"\n")
                lines += 1
            progress.advance(task)
    return lines, size


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )
