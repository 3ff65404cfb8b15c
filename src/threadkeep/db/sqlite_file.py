"""The file behind a SQLite database, and what goes wrong with it as our errors.

It is made for its owner's eyes, has room set aside for an erase, and is watched: an open file can be deleted unnoticed.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from threadkeep.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable

_HEADROOM = 1_048_576  # that messages leave free, on a small disk an eighth: erasing them takes it in the log
_LEAST_ROOM = 65_536
_RESERVE = 1_048_576
_KEPT_BACK = _RESERVE // 4  # for folding the log while the rest is in use
_PLENTY = 16 * 1_048_576  # four times what the log grows to before it is folded into the database


def _room_beyond_headroom(path: str) -> int:
    disk = shutil.disk_usage(Path(path).parent)
    return disk.free - min(_HEADROOM, disk.total // 8)


def has_room(path: str) -> bool:
    """Whether the disk has room for a small commit that lets the database grow."""
    try:
        return _room_beyond_headroom(path) >= 0
    except OSError:  # a folder that was removed is reported by `FileIdentity.check`
        return True


def is_short_of_room(path: str) -> bool:
    """Whether the log must be kept short: folding it makes the database grow, which a full disk does not let it."""
    try:
        return shutil.disk_usage(os.path.dirname(path) or ".").free < _PLENTY  # pathlib would take twice as long
    except OSError:
        return False


def pages_in(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA page_count").fetchone()[0]


def refuse_growth(connection: sqlite3.Connection, path: str) -> None:
    """Raise `StoreFull`, before a commit that lets the database grow, where too little room would be left to erase.

    The commit takes room twice: in the log, and in the database once the log is folded into it. A log that cannot be
    folded keeps its room, and then nothing could be erased any more.
    """
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    grows = pages_in(connection) * size - os.path.getsize(path)
    if _room_beyond_headroom(path) < 2 * max(0, grows):
        raise StoreFull(f"{path}: the disk has no room left for this commit; free some and retry")


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

        Without it an append would be answered `stored` in a file that cannot be opened any more.
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
        self._used = False

    def keep(self) -> None:
        """Make it unless it is there. Where the disk has no room now, the next opening or erase tries again.

        One that was used up comes back as far as it fits: an erase on a full disk must leave room for the next.
        """
        free, kept = shutil.disk_usage(self._path.parent).free, self._size()
        size = _RESERVE if free >= 4 * _RESERVE else min(_RESERVE, free + kept - _LEAST_ROOM) if self._used else 0
        if size <= kept:
            return
        try:
            with open(self._path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(os.urandom(size - kept))  # zeros would take no room on a file system that compresses
        except OSError:
            self._shrink(kept)
        else:
            self._used = size < _RESERVE

    def release(self) -> bool:
        """Give room to the log, and keep back what `give` may need. Return whether there was any."""
        if not self._shrink(_KEPT_BACK) and not self._shrink(0):
            return False
        self._used = True
        return True

    def give(self, room: int) -> bool:
        """Give so many bytes, by which folding the log makes the database grow. False where there are not as many."""
        size = self._size()
        if size < room or not self._shrink(size - room):
            return False
        self._used = True
        return True

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _shrink(self, size: int) -> bool:
        try:
            if self._path.stat().st_size <= size:
                return False
            if size:
                os.truncate(self._path, size)
            else:
                self._path.unlink()
        except OSError:
            return False
        return True


_BY_PRIMARY_CODE: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreUnavailable,
    sqlite3.SQLITE_LOCKED: StoreUnavailable,
    sqlite3.SQLITE_PROTOCOL: StoreUnavailable,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailable,
    sqlite3.SQLITE_IOERR: StoreUnavailable,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_PERM: StoreReadOnly,
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_CORRUPT: StoreCorrupt,
    sqlite3.SQLITE_NOTADB: StoreCorrupt,
}

_BY_ERRNO: dict[int, type[StoreError]] = {
    errno.EACCES: StoreReadOnly,
    errno.EPERM: StoreReadOnly,
    errno.EROFS: StoreReadOnly,
    errno.ENOSPC: StoreFull,
}

_FIXES: dict[type[StoreError], str] = {
    StoreUnavailable: "the file could not be reached or stayed locked",
    StoreReadOnly: "the file or its folder is read-only; give the process write access",
    StoreFull: "no space is left on the disk; free some and retry",
    StoreCorrupt: "the file is not a sound SQLite database; restore it from a backup",
    StoreError: "SQLite refused the work",
}


def translated(error: sqlite3.Error, path: str) -> StoreError:
    """Our error for theirs. SQLite's message names constraints and tables, never values, so it may be repeated."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind = _BY_PRIMARY_CODE.get(code, StoreError)
    if code == sqlite3.SQLITE_CANTOPEN and _folder_is_read_only(path):  # it could not create its log beside the file
        kind = StoreReadOnly
    if code == sqlite3.SQLITE_IOERR and not has_room(path):  # for the index of its log, which it cannot do without
        kind = StoreFull
    return kind(f"{path}: {_FIXES[kind]} (SQLite: {error})")


def _folder_is_read_only(path: str) -> bool:
    folder = Path(path).parent
    return folder.is_dir() and not os.access(folder, os.W_OK)


@contextmanager
def our_errors(path: str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except OSError as error:  # its folder or its file cannot be made
        kind = _BY_ERRNO.get(error.errno or 0, StoreUnavailable)
        raise kind(f"{path}: {_FIXES[kind]} ({error.strerror})") from error
