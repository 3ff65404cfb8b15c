"""What keeps a Chroma from being used, found out without changing it.

A folder belongs to the process that uses it, so it is looked at from outside: whether it can be written to, and whether
its file is a database at all.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from threadkeep.errors import ThreadkeepError
from threadkeep.index.chroma_client import connected, our_errors, release

_FILE = "chroma.sqlite3"


def problem_with_chroma(where: str) -> str | None:
    """Blocks. None where it can be used; a folder that is not there yet can be made."""
    return _at_server(where) if "://" in where else _in_folder(Path(where))


def _at_server(where: str) -> str | None:
    try:
        with our_errors(where):
            client = connected(where)
            try:
                client.heartbeat()
            finally:
                release(client)
    except ThreadkeepError as error:
        return str(error)
    return None


def _in_folder(folder: Path) -> str | None:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        return "is no folder" if there == folder.absolute() else "cannot be made: a file is in its way"
    if not os.access(there, os.W_OK | os.X_OK):
        return "cannot be written to"
    file = folder / _FILE
    if not file.exists():
        return None
    if not os.access(file, os.W_OK):
        return f"{_FILE} in it cannot be written to"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM collections").fetchone()
    except sqlite3.DatabaseError as error:
        return None if "locked" in str(error) else f"{_FILE} in it is damaged"
    return None
