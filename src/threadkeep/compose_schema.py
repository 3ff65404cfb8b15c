"""The state of a store's tables, whichever store it is, and bringing them up to date."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadkeep.compose import is_server_url, sql_parts, sqlite_path
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_schema import NEWEST, version_of
from threadkeep.errors import NotFound
from threadkeep.settings import Settings


@dataclass(frozen=True, slots=True)
class SchemaReport:
    found: str | None  # None where there were no tables of ours
    newest: str
    up_to_date: bool  # by now

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def check_schema(url: str, settings: Settings) -> SchemaReport:
    """Look, and change nothing. Raises `SchemaTooNew`, and `NotFound` where there is no file."""
    if is_server_url(url):
        return await _on_server(url, settings, check=True)
    path = _existing(url)
    found = version_of(path)
    return SchemaReport(str(found) if found else None, str(NEWEST), found == NEWEST)


async def migrate_schema(url: str, settings: Settings) -> SchemaReport:
    """What it found; the tables are up to date afterwards."""
    if is_server_url(url):
        return await _on_server(url, settings, check=False)
    found = version_of(path := _existing(url))
    database = SqliteDatabase(path)
    await database.open()  # an embedded store is brought up to date whenever it is opened
    await database.close()
    return SchemaReport(str(found) if found else None, str(NEWEST), up_to_date=True)


async def _on_server(url: str, settings: Settings, *, check: bool) -> SchemaReport:
    found, newest = await sql_parts(url).server_schema(url, settings, check=check)
    return SchemaReport(found, newest, not check or found == newest)


def _existing(url: str) -> str:
    path = sqlite_path(url)
    if path == ":memory:" or not Path(path).exists():
        raise NotFound(f"{path}: there is no store here; check --url or DATABASE_URL")
    return path
