"""The real table behind a mapped name, as the server describes it. Only ever read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import JSON, Column, Connection, DateTime, MetaData, String, Table, Text, Uuid, inspect, text
from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.exc import SAWarning
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import TypeEngine

from threadkeep.archive.mapped.config import MappedName

Kind = Literal["text", "json", "time", "uuid", "other"]
_MICROSECOND_DIGITS = 6
# In bytes; JSON and LONGTEXT hold more than any turn.
_MYSQL_TEXTS: tuple[tuple[type[Any], int], ...] = (
    (mysql.TINYTEXT, 255),
    (mysql.MEDIUMTEXT, 16_777_215),
    (mysql.LONGTEXT, 4_294_967_295),
    (mysql.TEXT, 65_535),
)
_COLLATIONS = text(
    "SELECT column_name, collation_name FROM information_schema.columns"
    " WHERE table_schema = coalesce(:schema, database()) AND table_name = :name"
)


@dataclass(frozen=True, slots=True)
class RealColumn:
    name: str
    kind: Kind
    type: str
    nullable: bool
    filled: bool  # by the server, when we say nothing
    most_chars: int | None = None
    most_bytes: int | None = None
    digits: int = _MICROSECOND_DIGITS  # of a second
    zoned: bool = False
    local: bool = False  # MySQL's TIMESTAMP, which is told in the session's time zone
    exact: bool = True  # compares byte for byte


@dataclass(frozen=True, slots=True)
class Shape:
    """A table, its columns by their own names, and the sets of columns that are unique together."""

    name: MappedName
    columns: Mapping[str, RealColumn]
    unique: frozenset[frozenset[str]]
    table: Table


def shape_of(connection: Connection, name: MappedName) -> Shape | None:
    """None where there is no such table. For `AsyncConnection.run_sync`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # a type that SQLAlchemy does not know is no concern of ours
        found = inspect(connection)
        if not found.has_table(name.name, schema=name.schema):
            return None
        lenient = _lenient_columns(connection, name)
        columns = [_column(one, lenient) for one in found.get_columns(name.name, schema=name.schema)]
        unique = {frozenset(found.get_pk_constraint(name.name, schema=name.schema)["constrained_columns"])}
        for index in found.get_indexes(name.name, schema=name.schema):
            options = index.get("dialect_options", {})
            whole = not options.get("postgresql_where") and not options.get("mysql_length")
            if index["unique"] and whole and None not in index["column_names"]:
                unique.add(frozenset(column for column in index["column_names"] if column))
    table = Table(
        quoted_name(name.name, quote=True),
        MetaData(),
        *(Column(quoted_name(one.name, quote=True), _bound_type(one, connection)) for one in columns),
        schema=None if name.schema is None else quoted_name(name.schema, quote=True),
    )
    return Shape(name, {one.name: one for one in columns}, frozenset(unique), table)


def _lenient_columns(connection: Connection, name: MappedName) -> set[str]:
    """Those that take `Bob` for `bob`. Only MySQL and MariaDB do so unless told not to."""
    if connection.dialect.name == "postgresql":
        return set()
    found = connection.execute(_COLLATIONS, {"schema": name.schema, "name": name.name})
    return {row[0] for row in found if row[1] and not row[1].endswith("_bin")}


def _column(found: ReflectedColumn, lenient: set[str]) -> RealColumn:
    kind: Any = found["type"]
    return RealColumn(
        name=found["name"],
        kind=_kind(kind),
        type=type(kind).__name__.lower(),
        nullable=bool(found["nullable"]),
        filled=found.get("default") is not None
        or found.get("autoincrement") is True
        or bool(found.get("identity") or found.get("computed")),
        most_chars=getattr(kind, "length", None) if isinstance(kind, String) else None,
        most_bytes=next((most for kept, most in _MYSQL_TEXTS if isinstance(kind, kept)), None),
        digits=_digits(kind),
        zoned=bool(getattr(kind, "timezone", False)),
        local=isinstance(kind, mysql.TIMESTAMP),
        exact=found["name"] not in lenient,
    )


def _kind(kind: TypeEngine[Any]) -> Kind:
    if isinstance(kind, JSON):
        return "json"
    if isinstance(kind, DateTime):
        return "time"
    if isinstance(kind, Uuid):
        return "uuid"
    return "text" if isinstance(kind, String) and type(kind).__name__ not in ("ENUM", "SET") else "other"


def _digits(kind: Any) -> int:
    if isinstance(kind, mysql.DATETIME | mysql.TIMESTAMP):
        return getattr(kind, "fsp", None) or 0
    precision = getattr(kind, "precision", None) if isinstance(kind, DateTime) else None
    return _MICROSECOND_DIGITS if precision is None else precision


def _bound_type(column: RealColumn, connection: Connection) -> TypeEngine[Any]:
    if column.kind == "json":
        if column.type == "jsonb":
            from sqlalchemy.dialects.postgresql import JSONB

            return JSONB(none_as_null=True)
        return JSON(none_as_null=True)
    if column.kind == "time":
        if connection.dialect.name == "postgresql":
            return DateTime(timezone=column.zoned)
        return mysql.DATETIME(fsp=column.digits)
    return Uuid(as_uuid=False) if column.kind == "uuid" else Text()
