"""Whether a server would refuse an append: a replica, one that was made read-only, or a right that the user lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.ports.health import HealthFinding

# What an append does with each table; tests/contract/test_cannot_store.py holds it against a real one.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "tk_owners": ("SELECT", "INSERT", "UPDATE"),
    "tk_conversations": ("SELECT", "INSERT", "UPDATE"),
    "tk_messages": ("SELECT", "INSERT"),
    "tk_appends": ("SELECT",),
    "tk_generations": ("SELECT",),
    "tk_tombstones": ("SELECT",),
}
_NEEDED_ON_MYSQL = {**_NEEDED, "tk_words": ("INSERT",)}  # PostgreSQL keeps the words with the message

_PAIRS = [(table, right) for table, rights in _NEEDED.items() for right in rights]
_ON_POSTGRES = {"tables": [table for table, _ in _PAIRS], "rights": [right for _, right in _PAIRS]}
_ON_MYSQL = {"tables": list(_NEEDED_ON_MYSQL)}
_READ_ONLY_ON_POSTGRES = text("SELECT current_setting('transaction_read_only') <> 'off'")
# A right on some columns alone passes: which of them is not ours to tell here. A table that is missing is no right.
_LACKING_ON_POSTGRES = text(
    "SELECT n.right_, n.table_ FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[])) AS n (table_, right_)"
    " WHERE NOT coalesce(has_any_column_privilege(to_regclass(n.table_), n.right_), true)"
)
# Row-level security that no policy for inserts opens refuses every row, and hides all of them.
_CLOSED_ON_POSTGRES = text(
    "SELECT c.relname FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[])) AS n (table_, right_)"
    " JOIN pg_class c ON c.oid = to_regclass(n.table_)"
    " WHERE n.right_ = 'INSERT' AND row_security_active(c.oid)"
    " AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'a'))"
)
# MySQL and MariaDB name the second one differently, by their version.
_READ_ONLY_ON_MYSQL = text(
    "SHOW VARIABLES WHERE Variable_name IN ('read_only', 'tx_read_only', 'transaction_read_only', 'innodb_read_only')"
)
# Of a table on which the user has no right at all they list nothing.
_RIGHTS_ON_MYSQL = text(
    "SELECT table_name, group_concat(privileges) FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name IN :tables GROUP BY table_name"
).bindparams(bindparam("tables", expanding=True))


async def write_obstacle(connection: AsyncConnection) -> HealthFinding | None:
    """Return what would keep an append from being stored, None where nothing would. Only ever reads."""
    return await (_on_postgres if connection.dialect.name == "postgresql" else _on_mysql)(connection)


async def _on_postgres(connection: AsyncConnection) -> HealthFinding | None:
    if (await connection.execute(_READ_ONLY_ON_POSTGRES)).scalar():
        return _read_only()
    lacking = [(row[0], row[1]) for row in await connection.execute(_LACKING_ON_POSTGRES, _ON_POSTGRES)]
    if lacking:
        return _lacking(lacking)
    closed = sorted(row[0] for row in await connection.execute(_CLOSED_ON_POSTGRES, _ON_POSTGRES))
    if closed:
        message = f"row-level security closes {closed[0]} to the user of DATABASE_URL"
        return HealthFinding("row_security", message, "connect as the tables' owner, or give the user a policy")
    return None


async def _on_mysql(connection: AsyncConnection) -> HealthFinding | None:
    if any(row[1] != "OFF" for row in await connection.execute(_READ_ONLY_ON_MYSQL)):
        return _read_only()
    granted = {row[0]: str(row[1]).upper().split(",") for row in await connection.execute(_RIGHTS_ON_MYSQL, _ON_MYSQL)}
    if not granted:
        return None  # no tables of ours yet
    needed = ((right, table) for table, rights in _NEEDED_ON_MYSQL.items() for right in rights)
    lacking = [(right, table) for right, table in needed if right not in granted.get(table, ())]
    return _lacking(lacking) if lacking else None


def _read_only() -> HealthFinding:
    return HealthFinding("read_only", "the server is read-only", "point DATABASE_URL at its primary")


def _lacking(rights: Iterable[tuple[str, str]]) -> HealthFinding:
    named = ", ".join(f"{right} on {table}" for right, table in rights)
    fix = "grant the user SELECT, INSERT, UPDATE and DELETE on the tables"
    return HealthFinding("rights_missing", f"the user of DATABASE_URL lacks {named}", fix)
