"""Whether a server would refuse an append: a replica, one that was made read-only, a right that the user lacks, or a
table that is not there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import bindparam, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.errors import code_of
from threadkeep.ports.health import HealthFinding

# What an append does with each table, by itself, with a key, and through the journal. Held against a real one by
# tests/contract/test_cannot_store.py.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "tk_front": ("SELECT",),
    "tk_owners": ("SELECT", "INSERT", "UPDATE"),
    "tk_conversations": ("SELECT", "INSERT", "UPDATE"),
    "tk_messages": ("SELECT", "INSERT"),
    "tk_appends": ("SELECT", "INSERT"),
    "tk_generations": ("SELECT",),
    "tk_tombstones": ("SELECT",),
}
_NEEDED_ON_MYSQL = {**_NEEDED, "tk_words": ("INSERT",)}  # PostgreSQL keeps the words with the message

_PAIRS = [(table, right) for table, rights in _NEEDED.items() for right in rights]
_ON_POSTGRES = {"tables": [table for table, _ in _PAIRS], "rights": [right for _, right in _PAIRS]}
_ON_MYSQL = {"tables": list(_NEEDED_ON_MYSQL)}
_READ_ONLY_ON_POSTGRES = text("SELECT current_setting('transaction_read_only') <> 'off'")
# A schema without USAGE is passed over as if it were not in the search path, so its tables seem to be missing.
_HIDDEN_ON_POSTGRES = """(
    SELECT min(s.nspname) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE c.relname = n.table_ AND NOT has_schema_privilege(s.oid, 'USAGE') AND s.nspname IN (
        SELECT CASE trim(named, ' "') WHEN '$user' THEN current_user::text ELSE trim(named, ' "') END
        FROM unnest(string_to_array(current_setting('search_path'), ',')) AS p (named)
    )
)"""
_HIDING_ON_POSTGRES = text(f"SELECT {_HIDDEN_ON_POSTGRES} FROM (SELECT CAST(:table AS text)) AS n (table_)")  # noqa: S608
# A right on some columns alone passes: which of them are needed is not checked here.
_LACKING_ON_POSTGRES = text(
    f"SELECT n.right_, n.table_, to_regclass(n.table_) IS NULL, {_HIDDEN_ON_POSTGRES}"  # noqa: S608
    " FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[])) AS n (table_, right_)"
    " WHERE NOT coalesce(has_any_column_privilege(to_regclass(n.table_), n.right_), false)"
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
_NO_SUCH_TABLE_ON_MYSQL, _DENIED_ON_MYSQL = 1146, 1142
# Of a table on which the user has no right at all they list nothing.
_RIGHTS_ON_MYSQL = text(
    "SELECT table_name, group_concat(privileges) FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name IN :tables GROUP BY table_name"
).bindparams(bindparam("tables", expanding=True))


async def write_obstacle(connection: AsyncConnection) -> HealthFinding | None:
    """Return what would keep an append from being stored, None where nothing would. Only ever reads."""
    return await (_on_postgres if connection.dialect.name == "postgresql" else _on_mysql)(connection)


async def hiding_schema(connection: AsyncConnection, table: str) -> str | None:
    """Return the schema that has `table` and that the user may not use; None on MySQL and MariaDB, which have none."""
    if connection.dialect.name != "postgresql":
        return None
    return (await connection.execute(_HIDING_ON_POSTGRES, {"table": table})).scalar()


async def _on_postgres(connection: AsyncConnection) -> HealthFinding | None:
    if (await connection.execute(_READ_ONLY_ON_POSTGRES)).scalar():
        return _read_only()
    rows = [tuple(row) for row in await connection.execute(_LACKING_ON_POSTGRES, _ON_POSTGRES)]
    if schemas := sorted({hidden for *_, hidden in rows if hidden}):
        return _no_usage(schemas[0])
    if absent := sorted({table for _, table, missing, _ in rows if missing}):
        return _missing(absent, _NEEDED)
    if rows:
        return _lacking((right, table) for right, table, *_ in rows)
    closed = sorted(row[0] for row in await connection.execute(_CLOSED_ON_POSTGRES, _ON_POSTGRES))
    if closed:
        message = f"row-level security closes {closed[0]} to the user of DATABASE_URL"
        return HealthFinding("row_security", message, "connect as the tables' owner, or give the user a policy")
    return None


async def _on_mysql(connection: AsyncConnection) -> HealthFinding | None:
    if any(row[1] != "OFF" for row in await connection.execute(_READ_ONLY_ON_MYSQL)):
        return _read_only()
    granted = {row[0]: str(row[1]).upper().split(",") for row in await connection.execute(_RIGHTS_ON_MYSQL, _ON_MYSQL)}
    unseen = [table for table in _NEEDED_ON_MYSQL if table not in granted]
    if absent := [table for table in unseen if await _is_absent(connection, table)]:
        return _missing(absent, _NEEDED_ON_MYSQL)
    needed = ((right, table) for table, rights in _NEEDED_ON_MYSQL.items() for right in rights)
    lacking = [(right, table) for right, table in needed if right not in granted.get(table, ())]
    return _lacking(lacking) if lacking else None


async def _is_absent(connection: AsyncConnection, table: str) -> bool:
    """As opposed to one on which the user has no right, which is not listed either."""
    try:
        await connection.execute(text(f"SELECT 1 FROM {table} LIMIT 0"))  # noqa: S608
    except DBAPIError as error:
        if code_of(error) == _NO_SUCH_TABLE_ON_MYSQL:
            return True
        if code_of(error) != _DENIED_ON_MYSQL:
            raise
    return False


def _read_only() -> HealthFinding:
    return HealthFinding("read_only", "the server is read-only", "point DATABASE_URL at its primary")


def _no_usage(schema: str) -> HealthFinding:
    message = f"the user of DATABASE_URL lacks USAGE on schema {schema}, which has the tables"
    return HealthFinding("rights_missing", message, f"GRANT USAGE ON SCHEMA {schema} to the user")


def _missing(absent: Sequence[str], needed: Collection[str]) -> HealthFinding | None:
    """None where there is no table of ours at all: then nothing was migrated yet, and the first question says so."""
    if len(absent) == len(needed):
        return None
    message = f"missing: table {', '.join(absent)}"
    fix = (
        "run `threadkeep migrate`; a table that was dropped or renamed comes back from a backup, or under its old name"
    )
    return HealthFinding("schema_outdated", message, fix)


def _lacking(rights: Iterable[tuple[str, str]]) -> HealthFinding:
    named = ", ".join(f"{right} on {table}" for right, table in rights)
    fix = "grant the user SELECT, INSERT, UPDATE and DELETE on the tables"
    return HealthFinding("rights_missing", f"the user of DATABASE_URL lacks {named}", fix)
