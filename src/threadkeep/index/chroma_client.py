"""Opening Chroma without its telemetry, and its errors as ours. The only module that imports it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
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
