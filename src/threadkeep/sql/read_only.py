"""Whether a server would refuse a write: a replica, or one that was told to."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_POSTGRES = text("SELECT current_setting('transaction_read_only')")
# MySQL and MariaDB name the second one differently, by their version.
_MYSQL = text(
    "SHOW VARIABLES WHERE Variable_name IN ('read_only', 'tx_read_only', 'transaction_read_only', 'innodb_read_only')"
)


async def refuses_writes(connection: AsyncConnection) -> bool:
    if connection.dialect.name == "postgresql":
        return (await connection.execute(_POSTGRES)).scalar() != "off"
    return any(row[1] != "OFF" for row in await connection.execute(_MYSQL))
