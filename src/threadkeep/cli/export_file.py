"""Where `threadkeep export --out` writes: a whole file or none, or a device or pipe that takes what comes."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from threadkeep.cli.stopping import stop_by_exit
from threadkeep.errors import InvalidInput

_BESIDE_THE_STORE = ("", "-wal", "-shm", "-journal")
_OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def export_file(out: Path, store: Path | None) -> Generator[IO[bytes]]:
    """A link is followed: what it points to is written, and the link stays. Never the store's own files."""
    try:
        target = Path(os.path.realpath(out))
        _refuse_the_store(target, store)
        with stop_by_exit(), _stream(out) if _takes_a_stream(out) else _whole_file(target) as file:
            yield file
    except OSError as error:
        raise InvalidInput("--out", f"could not be written ({error.strerror})", "give another file") from error


def _refuse_the_store(target: Path, store: Path | None) -> None:
    if store is None:
        return
    base = os.path.realpath(store)
    if any(_same(target, Path(base + ending)) for ending in _BESIDE_THE_STORE):
        raise InvalidInput("--out", "is a file of the store itself", "give another file: it would be overwritten")


def _same(one: Path, other: Path) -> bool:
    return one == other or (one.exists() and other.exists() and one.samefile(other))


def _takes_a_stream(out: Path) -> bool:
    """Asked of the name as given: what /dev/stdout leads to may have no name of its own."""
    return out.exists() and not stat.S_ISREG(out.stat().st_mode)


@contextmanager
def _stream(out: Path) -> Generator[IO[bytes]]:
    with open(os.open(out, os.O_WRONLY), "wb") as file:
        yield file


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
    """On Linux, a file that is gone with its process, however that ends; None where there is no such thing."""
    if hasattr(os, "O_TMPFILE") and _OPEN_FILES.is_dir():
        with suppress(OSError):
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600)
    return None
