"""From a database URL to an engine, with the TLS that the URL requests. Nothing is opened yet.

TLS is requested by libpq's `sslmode` and `sslrootcert` on every server. The drivers do not read these: asyncmy knows no
`sslmode`, so an operator who wrote `sslmode=require` would send what people say in the clear, and asyncpg checks a
certificate only against a file in the home folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlalchemy import URL, NullPool, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from threadkeep.errors import InvalidSetting, MissingExtra

# MySQL's own words for it, which its users know
MYSQL_TLS_OPTIONS = {"ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_check_hostname"}
TLS_OPTIONS = {"sslmode", "sslrootcert"} | MYSQL_TLS_OPTIONS
HOW_TO_TLS = "for TLS use sslmode=require, or sslmode=verify-full&sslrootcert=/path/to/ca.pem"
_CHECKED = ("verify-ca", "verify-full")
_UNSURE = ("allow", "prefer")
_MODES = ("disable", *_UNSURE, "require", *_CHECKED)
_LIBPQ_CERTIFICATES = "~/.postgresql/root.crt"
_NO = ("false", "0", "no", "off", "n", "f")


def postgres_tls(query: Mapping[str, Any]) -> ssl.SSLContext | str | None:
    """None where the URL says nothing: the driver then takes TLS where the server has it.

    The mode's name where the driver finds certificates by itself: those to trust, and those that show who we are.
    """
    mode = _mode(query)
    if mode is None or mode == "disable" or ("sslrootcert" not in query and _is_left_to_the_driver(mode)):
        return mode
    return _context(mode, query.get("sslrootcert"))


def mysql_tls(query: Mapping[str, Any]) -> ssl.SSLContext | None:
    mode = _mode(query)
    if mode in _UNSURE:
        raise InvalidSetting("DATABASE_URL", f"requests sslmode={mode}, which MySQL's driver cannot do", HOW_TO_TLS)
    if mode is None or mode == "disable":
        return None
    context = _context(mode, query.get("sslrootcert") or query.get("ssl_ca"), query.get("ssl_capath"))
    if "ssl_cert" in query:
        try:
            context.load_cert_chain(query["ssl_cert"], query.get("ssl_key"))
        except OSError:
            raise _unreadable("ssl_cert or ssl_key") from None
    return context


def _mode(query: Mapping[str, Any]) -> str | None:
    """What is said, or what follows from the certificates that are named."""
    mode = query.get("sslmode")
    if mode is None and {"sslrootcert", "ssl_ca", "ssl_capath"} & {*query}:
        return "verify-ca" if query.get("ssl_check_hostname", "").lower() in _NO else "verify-full"
    if mode is None and MYSQL_TLS_OPTIONS & {*query}:
        return "require"
    if mode is not None and mode not in _MODES:
        raise InvalidSetting("DATABASE_URL", "has an sslmode we do not know", f"use one of {', '.join(_MODES)}")
    return mode


def _context(mode: str, file: str | None, folder: str | None = None) -> ssl.SSLContext:
    """Trusts the certificates that are named, otherwise the machine's own (`system`, as libpq has it)."""
    named = None if file == "system" else file
    try:
        context = ssl.create_default_context(cafile=named, capath=folder)
    except OSError:
        raise _unreadable("sslrootcert or ssl_ca") from None
    context.check_hostname = mode == "verify-full"
    if mode not in _CHECKED and file is None and folder is None:
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_left_to_the_driver(mode: str) -> bool:
    told_elsewhere = os.environ.get("PGSSLROOTCERT") or os.path.isfile(os.path.expanduser(_LIBPQ_CERTIFICATES))
    return mode not in _CHECKED or bool(told_elsewhere)


def _unreadable(option: str) -> InvalidSetting:
    return InvalidSetting(
        "DATABASE_URL", f"names a file in {option} that cannot be read", "check its path, and that it is PEM"
    )


_DRIVERS = {
    "postgresql": ("postgresql+asyncpg", "postgres"),
    "postgres": ("postgresql+asyncpg", "postgres"),
    "mysql": ("mysql+asyncmy", "mysql"),
    "mariadb": ("mysql+asyncmy", "mysql"),
}
_SUPABASE_POOLER_PORT = 6543
_OUR_OPTIONS = {"pooler", "pgbouncer", "application_name", "charset", *TLS_OPTIONS}
_POSTGRES_OPTIONS = {"host", "port", *_OUR_OPTIONS} - MYSQL_TLS_OPTIONS
_MYSQL_OPTIONS = {"unix_socket", *_OUR_OPTIONS}
_WHO = re.compile(r"[^:]+://([^:/]*(:[^@]*)?@)?")  # as SQLAlchemy reads it: a ? in a password is part of that
_LOST = 2013  # the code of MySQL's clients for a lost connection


@dataclass(frozen=True, slots=True)
class PoolLimits:
    size: int = 10
    overflow: int = 10
    idle_seconds: float = 10.0  # after which a connection above `size` is closed
    wait_seconds: float = 10.0  # for a free connection
    connect_seconds: float = 5.0
    work_seconds: float = 30.0  # for one verb, all its statements and retries


def engine_for(url: str, limits: PoolLimits | None = None) -> AsyncEngine:
    """`postgresql://…`, `mysql://…` or `mariadb://…`; `?pooler=transaction` for PgBouncer in transaction mode.

    Raises `InvalidSetting` on a URL that is none of these, and `MissingExtra` when its driver is not installed.
    """
    limits = limits or PoolLimits()
    parsed = checked_url(url)
    driver, extra = _DRIVERS[parsed.get_backend_name()]
    try:
        return create_async_engine(
            parsed.difference_update_query(_OUR_OPTIONS).set(drivername=driver),
            poolclass=NullPool,  # `db.pool` keeps them
            pool_reset_on_return=None,  # every transaction of ours is ended by name; this spares a round trip
            isolation_level="READ COMMITTED",
            hide_parameters=True,  # or a failed statement would put a message's text into an error
            connect_args=_connect_args(parsed, limits),
        )
    except ModuleNotFoundError:
        raise MissingExtra(extra, f"{parsed.get_backend_name()}://") from None


def behind_a_transaction_pooler(url: str) -> bool:
    return _is_pooled(checked_url(url))


def _is_pooled(url: URL) -> bool:
    return (
        url.query.get("pooler") == "transaction"
        or url.query.get("pgbouncer") == "true"
        or url.port == _SUPABASE_POOLER_PORT
    )


def checked_url(url: str) -> URL:
    """Two spellings of one scheme (`postgres`, `postgresql`) are one URL. Raise `InvalidSetting`."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number, for one; their message repeats the URL
        raise InvalidSetting(
            "DATABASE_URL", "is not a database URL", "use postgresql://user:password@host/database"
        ) from None
    if parsed.get_backend_name() not in _DRIVERS:
        raise InvalidSetting("DATABASE_URL", "names no database we know", "use postgresql://… or mysql://…")
    known = _MYSQL_OPTIONS if _is_mysql(parsed) else _POSTGRES_OPTIONS
    options = _WHO.sub("", url, count=1).partition("?")[2].split("&")
    strange = any("@" in option and option.partition("=")[0] not in known for option in options)
    if {*"[]@"} & {*(parsed.host or "")} or "@" in (parsed.database or "") or strange:
        # a piece of the password is taken for host and database, which errors name
        fix = "percent-encode the password: @ is %40, / is %2F, ? is %3F"
        raise InvalidSetting("DATABASE_URL", "is not a database URL", fix)
    if not parsed.database:
        raise InvalidSetting("DATABASE_URL", "names no database", "end it with /database")
    unknown = sorted({*parsed.query} - known)
    if unknown:
        fix = HOW_TO_TLS if re.search("ssl|tls", unknown[0], re.IGNORECASE) else "leave it out"
        raise InvalidSetting("DATABASE_URL", f"has an option we do not know, {unknown[0]}", fix)
    return parsed.set(drivername=_DRIVERS[parsed.get_backend_name()][0])


def _connect_args(url: URL, limits: PoolLimits) -> dict[str, Any]:
    return _mysql_args(url, limits) if _is_mysql(url) else _postgres_args(url, limits)


def _is_mysql(url: URL) -> bool:
    return url.get_backend_name() in ("mysql", "mariadb")


def _mysql_args(url: URL, limits: PoolLimits) -> dict[str, Any]:
    # Strict, or the server would cut what is too long and say nothing. Naming the whole mode also rules out
    # NO_BACKSLASH_ESCAPES, under which the driver's quoting would not be safe.
    patience = max(1, int(limits.work_seconds / 2))
    return {
        "charset": "utf8mb4",
        "connect_timeout": limits.connect_seconds,
        "ssl": mysql_tls(url.query),
        "async_creator_fn": _connect_mysql,
        "init_command": "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',"
        f" SESSION innodb_lock_wait_timeout = {patience}",
    }


async def _connect_mysql(**arguments: Any) -> Any:
    """Cancelled half-way, the driver would leave an open socket behind."""
    asyncmy: Any = import_module("asyncmy")
    opening = asyncio.create_task(_awaited(asyncmy.connect(**arguments)))
    try:
        return await asyncio.shield(opening)
    except RuntimeError as error:  # of uvloop, where the other side has closed the connection as soon as it was open
        raise asyncmy.errors.OperationalError(_LOST, f"the server closed the connection ({error})") from None
    except asyncio.CancelledError:
        close_once_open(opening)
        raise


async def _awaited(connecting: Any) -> Any:
    return await connecting  # the driver's own kind of awaitable, which no task takes


def _postgres_args(url: URL, limits: PoolLimits) -> dict[str, Any]:
    arguments: dict[str, Any] = {"timeout": limits.connect_seconds}
    if (asked := postgres_tls(url.query)) is not None:
        arguments["ssl"] = asked
    if "application_name" in url.query:
        arguments["server_settings"] = {"application_name": url.query["application_name"]}
    if _is_pooled(url):
        # The next transaction may run on another server connection, which knows none of our prepared statements:
        # prepare anew each time, under no name, so that none is left behind either.
        arguments |= {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": _no_name,
        }
    return arguments


def _no_name() -> str:
    return ""


_ENOUGH_SECONDS = 1.0
_unwanted: set[asyncio.Task[Any]] = set()


def close_once_open(opening: asyncio.Task[Any]) -> None:
    _unwanted.add(opening)
    opening.add_done_callback(_close)


async def none_half_open() -> None:
    """Of this loop. One that takes too long, because the other end does not answer, is cancelled after all."""
    loop = asyncio.get_running_loop()
    if not (here := {opening for opening in _unwanted if opening.get_loop() is loop}):
        return
    _, late = await asyncio.wait(here, timeout=_ENOUGH_SECONDS)
    for opening in late:
        opening.cancel()
    if late:
        await asyncio.wait(late, timeout=_ENOUGH_SECONDS)


def _close(opened: asyncio.Task[Any]) -> None:
    _unwanted.discard(opened)
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()
