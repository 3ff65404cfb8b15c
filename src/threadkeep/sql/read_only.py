"""Whether a server would refuse a write: a replica, one that was told to, or one that grants this user none."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# Where the table is not there yet, nobody can tell.
_POSTGRES = text(
    "SELECT current_setting('transaction_read_only') <> 'off'"
    " OR NOT coalesce(has_table_privilege(to_regclass('tk_messages'), 'INSERT'), true)"
)
# MySQL and MariaDB name the second one differently, by their version.
_MYSQL = text(
    "SHOW VARIABLES WHERE Variable_name IN ('read_only', 'tx_read_only', 'transaction_read_only', 'innodb_read_only')"
)
_MYSQL_GRANTED = text(
    "SELECT privileges FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name = 'tk_messages' LIMIT 1"
)


async def refuses_writes(connection: AsyncConnection) -> bool:
    if connection.dialect.name == "postgresql":
        return bool((await connection.execute(_POSTGRES)).scalar())
    if any(row[1] != "OFF" for row in await connection.execute(_MYSQL)):
        return True
    granted = (await connection.execute(_MYSQL_GRANTED)).scalar()
    return granted is not None and "insert" not in str(granted).lower()
