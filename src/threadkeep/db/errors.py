"""Drivers' errors mapped to ours. Never a value, a user or a password: only the server and the cause."""

from __future__ import annotations

import re
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from threadkeep.db.tables import metadata
from threadkeep.errors import (
    SchemaOutdated,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)

DRIVER_ERRORS = (DBAPIError, PoolTimeout, OSError, TimeoutError)

# Statements that were prepared on a connection, and another was given to the next transaction.
_POOLED: set[str | int] = {"26000", "42P05"}
_BUSY_POOLER = (
    "a statement that was prepared is not there, or twice; behind PgBouncer in transaction mode, add"
    " ?pooler=transaction to DATABASE_URL"
)
_NO_CONNECTION: set[str | int] = {"53300", 1040, 1203, 1226}
_ALL_TAKEN = (
    "the server has no connection left, for anybody or for this user; close some, raise its max_connections, or lower"
    " THREADKEEP_POOL_SIZE of the processes that share it"
)
_WRONG_CERTIFICATE = (
    "the server's certificate does not show that it is the one of the URL; check host, sslmode and sslrootcert in"
    " DATABASE_URL"
)
_READ_ONLY: set[str | int] = {"25006", 1290, 1792, 1836}
# A right on a table, a column or a row, as opposed to the login.
_DENIED: set[str | int | None] = {"42501", 1142, 1143, 1227, 1370}
# SQLSTATEs of PostgreSQL and error numbers of MySQL and MariaDB.
_KINDS: tuple[tuple[type[StoreError], set[Any]], ...] = (
    (StoreRefused, {"28P01", "28000", "3D000", 1044, 1045, 1049, 1698} | _DENIED | _POOLED),
    (StoreReadOnly, _READ_ONLY),
    (StoreFull, {"53100", 1021, 1114, 3675}),
    (SchemaOutdated, {"42P01", "42703", 1054, 1146}),
    (
        StoreUnavailable,
        {"53200", "53300", "55P03", 1040, 1053, 1203, 1205, 1213, 1226, 1927, 2002, 2003, 2006, 2013, 2055},
    ),
)
_OUTAGES = ("08", "57", "40")  # connection trouble; starting, stopping or cancelled; rolled back by the server
_ROLLED_BACK: set[str | int | None] = {"40001", "40P01", 1213, 1020}  # deadlock, serialisation: the same work may pass

# `Key (user_id)=(` of PostgreSQL; `FOREIGN KEY (`user_id``, `column 'user_id'` and `column `a`.`b`.`user_id`` of MySQL.
_COLUMN = re.compile(r"(?:\(|KEY \(`|column (?:`[^`]*`\.)*['`])([^()'`]+)(?:\)=\(|`|')")
_NAME = re.compile(r"[a-z_]+")

_PROBLEMS: dict[type[StoreError], str] = {
    StoreRefused: "the server refused the user, the password, the database or a right; check DATABASE_URL and grants",
    StoreReadOnly: "the server is read-only; point DATABASE_URL at its primary",
    StoreFull: "the server has no space left; free some and retry",
    SchemaOutdated: "a table or column is missing, or the user may not use its schema; see `threadkeep doctor`",
    StoreUnavailable: "the server could not be reached, or did not answer in time; is it up, and DATABASE_URL right?",
    StoreBusy: "all connections of the application's pool were busy; raise its size, or send less at once",
    StoreError: "the server refused the work",
}


def server_address(url: URL) -> str:
    """Enough to know which server is meant; no user, no password, no options."""
    backend = url.get_backend_name()
    port = f":{url.port}" if url.port else ""
    return f"{backend}://{url.host or 'local'}{port}/{url.database or ''}"


def translated(error: BaseException, url: URL) -> StoreError:
    code = code_of(error)
    kind = _kind(error, code)
    seen = f"{type(_original(error)).__name__}" + (f" {code}" if code is not None else "")
    if (table := _table_in(error)) is not None:
        seen += f" on {table}"
    text = _PROBLEMS[kind]
    if code in _POOLED:
        text = _BUSY_POOLER
    elif code in _NO_CONNECTION:
        text = _ALL_TAKEN
    elif _is_a_stranger(error):
        text = _WRONG_CERTIFICATE
    problem, _, fix = text.partition("; ")
    return kind(f"{server_address(url)}: {text} ({seen})", problem=f"{problem} ({seen})", fix=fix or None)


def _table_in(error: BaseException) -> str | None:
    """The first table of ours that the server names. Of its words nothing else is passed on: they may quote values."""
    return next((name for name in _NAME.findall(str(_original(error))) if name in metadata.tables), None)


def _is_a_stranger(error: BaseException) -> bool:
    """Drivers make an error of their own of it, and keep the first one behind that."""
    first: BaseException | None = _original(error)
    while first is not None and not isinstance(first, ssl.SSLCertVerificationError):
        first = first.__cause__ or first.__context__
    return first is not None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a server says of a statement that it refused. `column` and `constraint` are None where it names none."""

    code: str | int
    column: str | None
    constraint: str | None
    denied: bool  # for want of a right, not by the row's values


def refusal_of(error: DBAPIError, columns: Collection[str]) -> Refusal | None:
    """Return None for trouble of the server or the connection as a whole, which says nothing about the statement.

    A server's message may quote values, so of all its words only the names of `columns` are passed on.
    """
    code = code_of(error)
    refused = code in _DENIED or (_kind(error, code) is StoreError and not was_rolled_back(error))
    if code is None or not refused:
        return None
    original = _original(error)
    first: Any = original.__cause__ or original  # SQLAlchemy puts an error of its own around asyncpg's
    named = getattr(first, "column_name", None)
    if named is None:
        message = f"{getattr(first, 'detail', None) or ''} {original.args[-1] if original.args else ''}"
        named = next((found for found in _COLUMN.findall(message) if found in columns), None)
    return Refusal(code, named, getattr(first, "constraint_name", None), denied=code in _DENIED)


def was_rolled_back(error: BaseException) -> bool:
    """The server undid the whole transaction and another try may pass."""
    return code_of(error) in _ROLLED_BACK


def is_read_only(error: BaseException) -> bool:
    """Over this connection: after a failover another may lead to the new primary."""
    return code_of(error) in _READ_ONLY


def lost_connection(error: BaseException) -> bool:
    """It ended under us; the server undoes what was not committed."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def never_answered(error: BaseException) -> bool:
    return lost_connection(error) or isinstance(error, (OSError, TimeoutError))


def code_of(error: BaseException) -> str | int | None:
    """Error number (MySQL) or SQLSTATE (PostgreSQL), where the driver gives one."""
    original: Any = _original(error)
    first = original.args[0] if original.args and not isinstance(original, OSError) else None
    return first if isinstance(first, int) else getattr(original, "sqlstate", None)


def _original(error: BaseException) -> BaseException:
    original = error.orig if isinstance(error, DBAPIError) else None
    return original or error


def _kind(error: BaseException, code: str | int | None) -> type[StoreError]:
    return next((kind for kind, codes in _KINDS if code in codes), None) or _by_nature(error, code)


def _by_nature(error: BaseException, code: str | int | None) -> type[StoreError]:
    if isinstance(error, PoolTimeout):
        return StoreBusy  # an application's own pool
    if isinstance(error, (OSError, TimeoutError)) or lost_connection(error):
        return StoreUnavailable
    return StoreUnavailable if isinstance(code, str) and code[:2] in _OUTAGES else StoreError
