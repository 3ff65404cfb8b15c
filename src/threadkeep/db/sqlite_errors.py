"""sqlite3's errors mapped to ours."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from threadkeep.db.sqlite_file import has_room
from threadkeep.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable

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
