"""`threadkeep export`: everything that is kept, as JSON Lines of conversations."""

from __future__ import annotations

import os
import secrets
import signal
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

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
from threadkeep.errors import InvalidInput
from threadkeep.http.encoding import encoded
from threadkeep.model import Shape, in_shape
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
    """How many journal entries, of anybody, never reached the archive. The export warns of them."""
    lag = memory.health().lag
    if lag and lag.dead:
        notes.print(f"{lag.dead} journal entries were given up on and are not in it: see `threadkeep dlq list`")
    return lag.dead if lag else 0


def _write(memory: SyncMemory, scope: Scope | None, shape: Shape, file: IO[bytes]) -> tuple[int, int]:
    """How many lines, and how many bytes."""
    lines = size = 0
    kept = memory.stats(scope)
    total = kept.conversations + kept.threads.count + kept.sessions + kept.items
    shown = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*shown, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Exporting", total=total)
        for record in memory.export(scope):
            if (told := in_shape(record, shape)) is not None:
                size += file.write(encoded(told) + b"\n")
                lines += 1
            progress.advance(task)
    return lines, size


_BESIDE_THE_STORE = ("", "-wal", "-shm", "-journal")
_OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def export_file(out: Path, store: Path | None) -> Generator[IO[bytes]]:
    """A link is followed: what it points to is written, and the link stays. Never the store's own files."""
    try:
        target = Path(os.path.realpath(out))
        _refuse_the_store(target, store)
        # By the name as given: what /dev/stdout leads to may have no name of its own.
        is_stream = out.exists() and not stat.S_ISREG(out.stat().st_mode)
        with stop_by_exit(), open(os.open(out, os.O_WRONLY), "wb") if is_stream else _whole_file(target) as file:
            yield file
    except OSError as error:
        raise InvalidInput("--out", f"could not be written ({error.strerror})", "give another file") from error


def _refuse_the_store(target: Path, store: Path | None) -> None:
    if store is None:
        return
    own = [Path(os.path.realpath(store) + ending) for ending in _BESIDE_THE_STORE]
    if target in own or any(target.exists() and one.exists() and target.samefile(one) for one in own):
        raise InvalidInput("--out", "is a file of the store itself", "give another file: it would be overwritten")


@contextmanager
def _whole_file(target: Path) -> Generator[IO[bytes]]:
    """It takes its name only once all of it is on the disk; until shared, it is readable by its owner alone."""
    unfinished = target.with_name(f".threadkeep-{secrets.token_hex(8)}")  # known before it is made, to be removed
    try:
        descriptor = _nameless(target.parent)
        has_a_name = descriptor is None
        if descriptor is None:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            if not has_a_name:  # src_dir_fd makes Python ask for the link to be followed
                os.link(_OPEN_FILES / str(descriptor), unfinished, src_dir_fd=descriptor)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _nameless(folder: Path) -> int | None:
    """On Linux, a file that is deleted with its process, however that ends; None where there is no such thing."""
    if hasattr(os, "O_TMPFILE") and _OPEN_FILES.is_dir():
        with suppress(OSError):
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600)
    return None


_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stop_by_exit() -> Generator[None]:
    """The first of them raises SystemExit, those after it wait for the cleaning. What was ignored stays so (nohup)."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def stop(number: int, frame: FrameType | None) -> None:
        for other in heard:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)
