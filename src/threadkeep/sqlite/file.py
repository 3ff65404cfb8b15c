"""The file behind a database: made for its owner's eyes, and watched, since an open file can be deleted unnoticed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from threadkeep.errors import StoreUnavailable


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
