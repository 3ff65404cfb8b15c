"""`threadkeep export`: everything that is kept, one conversation a line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from threadkeep.cli.options import Conversation, Json, Redis, Tenant, Url, User, existing_store, scope_or_all
from threadkeep.cli.output import notes, print_json
from threadkeep.errors import InvalidInput
from threadkeep.http.encoding import encoded
from threadkeep.scope import Scope
from threadkeep.sync import SyncMemory

Shape = Literal["full", "memory"]


def export(
    tenant: Tenant = None,
    user: User = None,
    conversation: Conversation = None,
    out: Annotated[Path | None, typer.Option(help="A file, complete or not there at all; otherwise stdout.")] = None,
    format: Annotated[Shape, typer.Option(help="All that is kept, or the shape of memory records.")] = "full",
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Write conversations as NDJSON: of a scope, or of the whole store; what a Redis has queued is flushed first."""
    scope = scope_or_all(tenant, user, conversation)
    with existing_store(url, redis, worker=True) as memory:
        memory.flushed()
        if out is None:
            _write(memory, scope, format, sys.stdout.buffer)
            sys.stdout.flush()
            return
        with whole_file(out) as file:
            lines = _write(memory, scope, format, file)
    if json:
        print_json({"out": str(out), "conversations": lines, "bytes": out.stat().st_size})
    else:
        notes.print(f"{lines} conversations in {out}")


def _write(memory: SyncMemory, scope: Scope | None, shape: Shape, file: IO[bytes]) -> int:
    lines = 0
    total = memory.stats(scope).conversations
    with _progress() as progress:
        task = progress.add_task("Exporting", total=total)
        for record in memory.export(scope):
            file.write(encoded(record.as_memory_record() if shape == "memory" else record.as_dict()) + b"\n")
            lines += 1
            progress.advance(task)
    return lines


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )


@contextmanager
def whole_file(path: Path) -> Generator[IO[bytes]]:
    """A file that takes its name only once all of it is on the disk; readable by its owner alone until shared."""
    unfinished: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            unfinished = Path(file.name)
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise InvalidInput("--out", f"could not be written ({error.strerror})", "give another file") from error
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
