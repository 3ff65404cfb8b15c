"""Chroma's client without its telemetry, its errors as ours, and a check that changes nothing.

The only module that imports Chroma. A folder belongs to the process that uses it, so the check looks from
outside: whether the folder can be written to, and whether its file is a database at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from threadkeep.errors import InvalidSetting, MissingExtra, StoreError, StoreUnavailable, ThreadkeepError


def connected(where: str) -> Any:
    """Blocks. A folder is made if need be; one folder serves one process only."""
    try:
        import chromadb
        from chromadb.config import Settings
    except ModuleNotFoundError:
        raise MissingExtra("chroma", "a Chroma index") from None
    settings = Settings(anonymized_telemetry=False)
    if "://" not in where:
        Path(where).mkdir(parents=True, exist_ok=True)
        return chromadb.PersistentClient(path=where, settings=settings)
    address = urlsplit(where)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidSetting("CHROMA_PATH", "is no folder and no address", "give a folder or http://host:port")
    secure = address.scheme == "https"
    port = address.port or (443 if secure else 8000)
    return chromadb.HttpClient(host=address.hostname, port=port, ssl=secure, settings=settings)


def release(client: Any) -> None:
    """Chroma shares what several clients of one address use, and leaves its HTTP connections open at the end."""
    client.close()
    if client._identifier not in client._identifier_to_system:
        for server in (client._server, client._admin_client._server):
            if hasattr(server, "_session"):
                server._session.close()


def is_missing(error: Exception) -> bool:
    return type(error).__name__ == "NotFoundError"


@contextmanager
def our_errors(location: str) -> Generator[None]:
    """Chroma raises what its parts raise: httpx's errors, its own, and a ValueError when it cannot connect."""
    named = location.rpartition("@")[2] if "://" in location else location
    try:
        yield
    except (ThreadkeepError, TimeoutError):
        raise
    except Exception as error:
        kind = type(error).__name__
        if _is_about_the_connection(error):
            raise StoreUnavailable(f"{named}: Chroma does not answer ({kind})") from None
        raise StoreError(f"{named}: Chroma could not do it ({kind})") from error


def _is_about_the_connection(error: Exception) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in ("httpx", "httpcore") or (isinstance(error, ValueError) and "connect" in str(error).lower())


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
