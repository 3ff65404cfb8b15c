"""On MySQL and MariaDB: threads by their id, and those that an application kept in two tables of its own.

`thread_key` begins the primary key, so the index of (thread_key, created_at) found nothing that it does not; people and
programs beside Threadkeep know a thread's id.
"""

from __future__ import annotations

from alembic import context, op
from sqlalchemy import inspect

from threadkeep.archive.sql.taking_over import take_over

revision = "0013"
down_revision = "0012"

_LENGTH = 255  # characters of the id, which may be of any length
_INDEXES = {
    "conversation_checkpoints": ("idx_thread_created", f"(thread_id({_LENGTH}), created_at DESC)"),
    "conversation_metadata": ("idx_thread_id", f"(thread_id({_LENGTH}))"),
}


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        return
    for table, (name, columns) in _INDEXES.items():
        there = {index["name"]: index["column_names"] for index in inspect(connection).get_indexes(table)}
        if "thread_id" not in there.get(name, ()):
            dropped = f"DROP INDEX {name}, " if name in there else ""
            op.execute(f"ALTER TABLE {table} {dropped}ADD INDEX {name} {columns}")
    if (redact := context.config.attributes["redact"]) is not None:
        take_over(connection, redact)
