"""The real table behind a mapped name, from SQLAlchemy's inspector and the server's own catalog. Only ever read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    CHAR,
    JSON,
    Column,
    Connection,
    DateTime,
    Dialect,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    Uuid,
    inspect,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.exc import SAWarning
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import TypeEngine

from threadkeep.archive.mapped.config import MappedTable

Kind = Literal["text", "json", "time", "uuid", "other"]
_MICROSECOND_DIGITS = 6
# In bytes; JSON and LONGTEXT hold more than any turn.
_MYSQL_TEXTS: tuple[tuple[type[Any], int], ...] = (
    (mysql.TINYTEXT, 255),
    (mysql.MEDIUMTEXT, 16_777_215),
    (mysql.LONGTEXT, 4_294_967_295),
    (mysql.TEXT, 65_535),
)
# Where Python's name of a character set is another.
_CODECS = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "latin1": "cp1252"}
_SHORT_UTF8 = ("utf8mb3", "utf8")  # three bytes a letter, so no emoji


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
    local: bool = False  # MySQL's TIMESTAMP, which is returned in the session's time zone
    exact: bool = True  # `Bob` is not `bob`
    blanks_count: bool = True  # `"tt "` is not `"tt"`
    fixed: bool = False  # as wide as it is, whatever is in it: blanks at the end are lost
    charset: str | None = None  # where it is not all of Unicode
    computed: bool = False  # by the server, always

    def encoded(self, text: str) -> bytes | None:
        """As the server writes it; None for what it cannot write here."""
        if self.charset in _SHORT_UTF8 and any(ord(letter) > 0xFFFF for letter in text):
            return None
        try:
            return text.encode(_CODECS.get(self.charset or "utf8mb4", self.charset or ""))
        except LookupError:
            return text.encode() if text.isascii() else None
        except UnicodeEncodeError:
            return None


@dataclass(frozen=True, slots=True)
class Shape:
    """A table, its columns by their own names, and the sets of columns that are unique together."""

    name: MappedTable
    columns: Mapping[str, RealColumn]
    unique: frozenset[frozenset[str]]
    table: Table
    takes_rows: bool = True
    rights: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])  # by column


def shape_of(connection: Connection, name: MappedTable) -> Shape | None:
    """None where there is no such table. For `AsyncConnection.run_sync`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # a type that SQLAlchemy does not know is no concern of ours
        found = inspect(connection)
        if not found.has_table(name.name, schema=name.schema):
            return None
        letters = letters_of(connection, name)
        columns = [_column(one, letters) for one in found.get_columns(name.name, schema=name.schema)]
        late, primary = late_indexes(connection, name), found.get_pk_constraint(name.name, schema=name.schema)
        unique = {frozenset(primary["constrained_columns"])} if primary["name"] not in late else set[frozenset[str]]()
        for index in found.get_indexes(name.name, schema=name.schema):
            options = index.get("dialect_options", {})
            whole = not options.get("postgresql_where") and not options.get("mysql_length")
            if index["unique"] and whole and None not in index["column_names"] and index["name"] not in late:
                unique.add(frozenset(column for column in index["column_names"] if column))
    table = Table(
        quoted_name(name.name, quote=True),
        MetaData(),
        *(Column(quoted_name(one.name, quote=True), _bound_type(one, connection)) for one in columns),
        schema=None if name.schema is None else quoted_name(name.schema, quote=True),
    )
    rows, rights = takes_rows(connection, name), rights_on(connection, name)
    return Shape(name, {one.name: one for one in columns}, frozenset(unique), table, rows, rights)


def _column(found: ReflectedColumn, letters: Mapping[str, Letters]) -> RealColumn:
    kind: Any = found["type"]
    here = letters.get(found["name"])
    fixed = isinstance(kind, CHAR)
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
        exact=here is None or here.exact,
        blanks_count=not fixed and (here is None or here.blanks_count),
        fixed=fixed,
        charset=here.charset if here and here.charset != "utf8mb4" else None,
        computed=bool(found.get("computed") or (found.get("identity") or {}).get("always")),
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
    if column.fixed:
        return _Unpadded()
    return Uuid(as_uuid=False) if column.kind == "uuid" else Text()


class _Unpadded(TypeDecorator[str]):
    """PostgreSQL gives a `char(36)` back with the blanks that fill it up."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.rstrip(" ")


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
