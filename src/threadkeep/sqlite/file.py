"""The file behind a database: made for its owner's eyes, and watched, since an open file can be deleted unnoticed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from threadkeep.errors import StoreUnavailable

_LEAST_ROOM = 65_536
_RESERVE = 1_048_576


def has_room(path: str) -> bool:
    """Whether the disk has room for a small commit: the log takes a page for each page that changes."""
    try:
        return shutil.disk_usage(Path(path).parent).free >= _LEAST_ROOM
    except OSError:  # a folder that was removed is reported by `FileIdentity.check`
        return True


class FileIdentity:
    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None

    def create(self) -> None:
        """The folder and an empty file that only its owner may read, unless they are there; remembers which file."""
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._identity = self._now()

    def check(self) -> None:
        """Raises `StoreUnavailable` when the path leads to another file by now, or to none.

        Without it an append would be answered `stored` in a file that nobody can open any more.
        """
        if self._identity is not None and self._now() != self._identity:
            raise StoreUnavailable(f"{self._path}: the file was removed or replaced while it was open; open it again")

    def may_write(self) -> bool:
        """To its folder, too: that is where the log stands."""
        return os.access(self._path, os.W_OK) and os.access(Path(self._path).parent, os.W_OK)

    def _now(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_dev, status.st_ino


class Reserve:
    """A megabyte beside the database that an erase may use up when the disk is full: deleting takes room in the log.

    A small disk is left to the messages: there is no reserve where less than four times its size is free.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}-reserve")

    def keep(self) -> None:
        """Make it unless it is there. Where the disk has no room now, the next opening or erase tries again."""
        if self._path.exists() or shutil.disk_usage(self._path.parent).free < 4 * _RESERVE:
            return
        try:
            with open(self._path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(os.urandom(_RESERVE))  # zeros would take no room on a file system that compresses
        except OSError:
            self._path.unlink(missing_ok=True)

    def release(self) -> bool:
        """Return whether there was one."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
