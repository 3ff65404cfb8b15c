"""Who wrote each message and when it arrived; service and admin keys may go on writing as the assistant.

Existing rows keep NULL in both columns, which reads as "not recorded": filling them would rewrite the whole table.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0009"
down_revision = "0008"

_COLUMNS = {
    "postgresql": {"origin": "TEXT", "stored_at": "BIGINT"},
    "mysql": {"origin": "VARCHAR(255)", "stored_at": "BIGINT"},
}
# Until now `write` allowed it. A plain user's key loses it, as intended.
_KEYS = (
    "UPDATE tk_api_keys SET permissions = CONCAT(permissions, ' write_as')"
    " WHERE (user_id IS NULL OR role <> 'USER') AND CONCAT(' ', permissions, ' ') LIKE '% write %'"
    " AND POSITION('write_as' IN permissions) = 0"
)


def upgrade() -> None:
    connection = op.get_bind()
    there = {column["name"] for column in inspect(connection).get_columns("tk_messages")}
    for name, kind in _COLUMNS["postgresql" if connection.dialect.name == "postgresql" else "mysql"].items():
        if name not in there:
            op.execute(f"ALTER TABLE tk_messages ADD COLUMN {name} {kind}")
    op.execute(_KEYS)
