"""What verbs are made of: statements, and the dialect in which a database takes them.

A verb is a generator: it yields statements, receives their answers and returns its result. It does no I/O, so it is
written once for every database, and a driver that has to try again begins it anew. Its statements have named
parameters, `:name`. A `Dialect` has what the databases call differently: a few phrases, and the form in which some
values are bound and read. Statements are not frozen: a frozen one takes four times as long to make (1.0 µs for 0.25),
and an append makes several.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

T = TypeVar("T")
Values = Mapping[str, Any]


@dataclass(slots=True)
class Query:
    """Answered with a list of rows. `alone`: see `Change`."""

    text: str
    values: Values = field(default_factory=dict[str, Any])
    alone: bool = False


@dataclass(slots=True)
class Change:
    """Answered with the number of rows it changed: 0 for an INSERT that `may_exist` and whose key is taken.

    `alone`: it may be committed by itself. A verb that may be repeated then spares a server BEGIN and COMMIT.
    """

    text: str
    values: Values = field(default_factory=dict[str, Any])
    may_exist: bool = False
    alone: bool = False


@dataclass(slots=True)
class ChangeEach:
    """One change for each of `rows`, in their order. Answered with nothing."""

    text: str
    rows: Sequence[Values]
    alone: ClassVar[bool] = False


Statement = Query | Change | ChangeEach
Verb = Generator[Statement, Any, T]
Steps = Verb[None]


class Raced(Exception):
    """Raised by a verb when another transaction came first in a way that a new attempt will see."""


class KeyTaken(Exception):
    """Raised in a verb at the INSERT whose key is taken. The transaction can only be rolled back."""


class ReferenceMissing(Exception):
    """Raised in a verb at the INSERT that refers to a missing row. The transaction can only be rolled back."""


class Undo(Exception):
    """Raised by a verb to roll back its transaction and return `result` all the same."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


def query(text: str, values: Values | None = None) -> Verb[Sequence[Any]]:
    """A verb of one query: its rows."""
    rows: Sequence[Any] = yield Query(text, values or {})
    return rows


def one_row(text: str, values: Values | None = None) -> Verb[Any | None]:
    """The first row that the query finds, or None."""
    rows: Sequence[Any] = yield Query(text, values or {})
    return rows[0] if rows else None


def changes(steps: Sequence[Change], *, only_if_first: bool = False) -> Verb[list[int]]:
    """All of them, or none; how many rows each changed.

    `only_if_first`: unless the first one changes a row, nothing is done and the answer is empty.
    """
    counts: list[int] = []
    for number, step in enumerate(steps):
        if only_if_first and not number:
            step = Change(step.text, step.values, may_exist=True)
        counts.append((yield step))
        if only_if_first and not counts[0]:
            raise Undo([])
    return counts


def raise_in(verb: Verb[Any], violation: KeyTaken | ReferenceMissing, error: Exception) -> Statement:
    """The verb's next statement, after it caught the violation. Raise the driver's `error` where it does not."""
    try:
        return verb.throw(violation)
    except (KeyTaken, ReferenceMissing) as uncaught:
        if uncaught is violation:
            raise error from None
        raise


Name = Literal["sqlite", "postgres", "mysql"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`name` is "mysql" for MariaDB too; `is_mariadb` is set for MariaDB alone."""

    name: Name
    is_mariadb: bool = False

    @property
    def is_sqlite(self) -> bool:
        return self.name == "sqlite"

    @property
    def is_postgres(self) -> bool:
        return self.name == "postgres"

    @property
    def is_mysql(self) -> bool:
        return self.name == "mysql"

    @property
    def greatest(self) -> str:
        """The function that returns the greater of two values."""
        return "max" if self.is_sqlite else "greatest"

    def id(self, value: str) -> str | bytes:
        """An id as it is bound: bytes on MySQL and MariaDB, text with a binary collation elsewhere."""
        return value.encode() if self.is_mysql else value

    def text(self, value: str) -> str | bytes:
        """Text of any length as it is bound: it comes back exactly, also with NUL or lone surrogates.

        UTF-8 cannot carry lone surrogates: SQLite gets bytes then. Servers refuse NUL too, and get it encoded.
        """
        if not self.is_sqlite:
            return storable(value)
        return value if value.isascii() or is_encodable(value) else value.encode("utf-8", "surrogatepass")

    def read_text(self, stored: str | bytes) -> str:
        if isinstance(stored, str):
            return stored if self.is_sqlite else given_text(stored)
        return stored.decode("utf-8", "surrogatepass")

    @property
    def locked(self) -> str:
        """The end of a query that locks its rows for this transaction. SQLite has one writer at a time anyway."""
        return "" if self.is_sqlite else " FOR UPDATE"

    def locked_in(self, table: str, *, keeps_key: bool = False) -> str:
        """The end of a query that locks the rows of one of its tables. MariaDB cannot name one: it locks all it read.

        `keeps_key`: the rows stay, with their keys, so that PostgreSQL lets others refer to them.
        """
        if self.is_sqlite or self.is_mariadb:
            return self.locked
        return f" FOR {'NO KEY ' if keeps_key and self.is_postgres else ''}UPDATE OF {table}"

    @property
    def locked_shared(self) -> str:
        return {"sqlite": "", "postgres": " FOR SHARE", "mysql": " LOCK IN SHARE MODE"}[self.name]

    def among(self, name: str, values: Sequence[bytes]) -> tuple[str, dict[str, Any]]:
        """`(:name0, :name1, …)`, for behind an IN, and what is bound there."""
        kind = "CAST(:{} AS BYTEA)" if self.is_postgres else ":{}"
        names = [f"{name}{number}" for number in range(len(values))]
        return f"({', '.join(kind.format(one) for one in names)})", dict(zip(names, values, strict=True))

    def in_list(self, column: str, name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
        """A condition, and what is bound in it: `column` is one of `values`.

        PostgreSQL takes them as an array, so that the text, and what is prepared for it, serves any number.
        """
        if self.is_postgres:
            return f"{column} = ANY(:{name})", {name: list(values)}
        names = [f"{name}{number}" for number in range(len(values))]
        some = ", ".join(f":{one}" for one in names) or "NULL"
        return f"{column} IN ({some})", dict(zip(names, values, strict=True))

    def in_pairs(
        self, columns: tuple[str, str], kinds: tuple[str, str], name: str, values: Sequence[tuple[Any, Any]]
    ) -> tuple[str, dict[str, Any]]:
        """A condition, and what is bound in it: the two columns, of these `kinds` on PostgreSQL, are such a pair."""
        both = f"({columns[0]}, {columns[1]})"
        if self.is_postgres:
            lists = ", ".join(f"CAST(:{name}_{number} AS {kind}[])" for number, kind in enumerate(kinds))
            bound = {f"{name}_{number}": [value[number] for value in values] for number in (0, 1)}
            return f"{both} IN (SELECT * FROM unnest({lists}))", bound  # noqa: S608
        pairs = ", ".join(f"(:{name}{number}_0, :{name}{number}_1)" for number in range(len(values)))
        bound = {f"{name}{number}_{part}": value[part] for number, value in enumerate(values) for part in (0, 1)}
        return f"{both} IN ({'VALUES ' if self.is_sqlite else ''}{pairs})", bound

    def if_absent(self, column: str) -> str:
        """The end of an INSERT that leaves a row alone whose key is taken.

        On MySQL not `INSERT IGNORE`, which also swallows real errors and logs a warning each time.
        """
        return f" ON DUPLICATE KEY UPDATE {column} = {column}" if self.is_mysql else " ON CONFLICT DO NOTHING"

    def upsert(self, table: str, rows: Sequence[Mapping[str, str]], key: str, replaced: Sequence[str]) -> str:
        """`rows`: by column, where its value is bound. `replaced`: columns of a row that is there already by its `key`.

        MySQL warns of VALUES(column) each time, which costs a round trip and a log entry. MariaDB knows no other name
        of a new row but that of a table it is selected from.
        """
        columns, values = ", ".join(rows[0]), [", ".join(row.values()) for row in rows]
        if not self.is_mysql:
            news = ", ".join(f"{name} = excluded.{name}" for name in replaced)
            placed = ", ".join(f"({row})" for row in values)
            return f"INSERT INTO {table} ({columns}) VALUES {placed} ON CONFLICT ({key}) DO UPDATE SET {news}"  # noqa: S608
        named = ", ".join(f"{value} AS {name}" for name, value in rows[0].items())
        new = " UNION ALL SELECT ".join([named, *values[1:]])
        news = ", ".join(f"{name} = new.{name}" for name in replaced)
        return f"INSERT INTO {table} ({columns}) SELECT * FROM (SELECT {new}) AS new ON DUPLICATE KEY UPDATE {news}"  # noqa: S608


SQLITE = Dialect("sqlite")
POSTGRES = Dialect("postgres")
MYSQL = Dialect("mysql")
MARIADB = Dialect("mysql", is_mariadb=True)


def read_id(stored: str | bytes) -> str:
    """An id as it comes from any of the databases."""
    return bytes(stored).decode() if isinstance(stored, bytes | bytearray) else stored


# Marks a text that a server cannot hold as it is; a text that happens to start so is marked as well.
_ENCODED = "\x01tk64:"


def given_text(stored: str) -> str:
    if not stored.startswith(_ENCODED):
        return stored
    return base64.b64decode(stored.removeprefix(_ENCODED)).decode("utf-8", "surrogatepass")


def storable(text: str) -> str:
    if "\x00" not in text and not text.startswith(_ENCODED) and is_encodable(text):
        return text
    return _ENCODED + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
