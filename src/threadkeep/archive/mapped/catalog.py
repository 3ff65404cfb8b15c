"""What a server knows of a table and SQLAlchemy's inspector does not report. It is only ever read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from threadkeep.archive.mapped.config import MappedTable

_LETTERS = text(
    "SELECT column_name, collation_name, character_set_name FROM information_schema.columns"
    " WHERE table_schema = coalesce(:schema, database()) AND table_name = :name"
)
_VIEW = text(
    "SELECT is_updatable FROM information_schema.views"
    " WHERE table_schema = coalesce(:schema, database()) AND table_name = :name"
)
_ON_POSTGRES = (
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace{}"
    " WHERE c.relname = :name AND coalesce(n.nspname = CAST(:schema AS text), pg_table_is_visible(c.oid))"
)
_TAKES_ROWS_ON_POSTGRES = text("SELECT pg_relation_is_updatable(c.oid, true) & 8" + _ON_POSTGRES.format(""))
_INDEXES = " JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid"
_LATE_ON_POSTGRES = text(
    "SELECT i.relname" + _ON_POSTGRES.format(_INDEXES) + " AND NOT (x.indimmediate AND x.indisvalid)"
)


_COLUMNS = " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
_EACH_RIGHT = " CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE')) AS r (name)"
_RIGHTS_ON_POSTGRES = text(
    "SELECT a.attname, r.name"
    + _ON_POSTGRES.format(_COLUMNS + _EACH_RIGHT)
    + " AND has_column_privilege(c.oid, a.attnum, r.name)"
)
_RIGHTS = text(
    "SELECT column_name, privileges FROM information_schema.columns"
    " WHERE table_schema = coalesce(:schema, database()) AND table_name = :name"
)


@dataclass(frozen=True, slots=True)
class Letters:
    """How MySQL and MariaDB compare a column of text, and what they can write in it."""

    collation: str
    charset: str

    @property
    def exact(self) -> bool:
        """Whether `Bob` is not `bob`."""
        return self.collation.endswith("_bin")

    @property
    def blanks_count(self) -> bool:
        """Whether `"tt "` is not `"tt"`."""
        return "nopad" in self.collation or "0900" in self.collation


def letters_of(connection: Connection, name: MappedTable) -> Mapping[str, Letters]:
    """By column. Nothing where the server compares byte for byte and writes everything, as PostgreSQL does."""
    if connection.dialect.name == "postgresql":
        return {}
    return {row[0]: Letters(row[1], row[2]) for row in connection.execute(_LETTERS, _named(name)) if row[1]}


def takes_rows(connection: Connection, name: MappedTable) -> bool:
    """A view may not."""
    if connection.dialect.name == "postgresql":
        return any(row[0] for row in connection.execute(_TAKES_ROWS_ON_POSTGRES, _named(name)))
    return all(row[0] == "YES" for row in connection.execute(_VIEW, _named(name)))


def rights_on(connection: Connection, name: MappedTable) -> Mapping[str, frozenset[str]]:
    """By column, which of SELECT, INSERT and UPDATE this user has, be it on the table or on the column alone."""
    found: dict[str, set[str]] = {}
    if connection.dialect.name == "postgresql":
        for column, right in connection.execute(_RIGHTS_ON_POSTGRES, _named(name)):
            found.setdefault(column, set()).add(right)
    else:
        for column, rights in connection.execute(_RIGHTS, _named(name)):
            found[column] = set(str(rights).upper().split(","))
    return {column: frozenset(rights) for column, rights in found.items()}


def late_indexes(connection: Connection, name: MappedTable) -> frozenset[str]:
    """Those that PostgreSQL cannot upsert by: checked at the end of a transaction, or not built to the end."""
    if connection.dialect.name != "postgresql":
        return frozenset()
    return frozenset(row[0] for row in connection.execute(_LATE_ON_POSTGRES, _named(name)))


def _named(name: MappedTable) -> dict[str, Any]:
    return {"name": name.name, "schema": name.schema}
