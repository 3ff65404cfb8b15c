"""A disk of our own: tiny, and read-only on demand. Root may mount one; a laptop skips the test, CI fails it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.servers.missing import verdict_on_missing


@contextmanager
def tiny_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    if os.geteuid() != 0:
        _cannot("only root can mount a disk of a given size")
    folder.mkdir()
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    if mounted.returncode != 0:
        _cannot(f"no disk could be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        _run("umount", "--lazy", str(folder))


def make_read_only(folder: Path) -> None:
    done = _run("mount", "-o", "remount,ro", str(folder))
    assert done.returncode == 0, done.stderr


def enlarge(folder: Path, kilobytes: int) -> None:
    done = _run("mount", "-o", f"remount,size={kilobytes}k", str(folder))
    assert done.returncode == 0, done.stderr


def fill(folder: Path) -> Path:
    """A file that takes all the space that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4_096)
        except OSError:
            return ballast


def _cannot(why: str) -> NoReturn:
    if verdict_on_missing(os.environ) == "fail":
        pytest.fail(why)
    pytest.skip(why)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)
