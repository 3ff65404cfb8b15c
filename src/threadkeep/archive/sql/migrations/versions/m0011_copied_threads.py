"""Keys of the threads that a thread was copied from, the first one first."""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    bind = op.get_bind()
    if "copied_from" not in {column["name"] for column in inspect(bind).get_columns("conversation_metadata")}:
        kind = "BYTEA" if bind.dialect.name == "postgresql" else "LONGBLOB"
        op.execute(f"ALTER TABLE conversation_metadata ADD COLUMN copied_from {kind}")
