"""On MySQL and MariaDB: a user's threads by the user's id alone, as people and programs beside Threadkeep ask for them.

Ours ask for tenant and user together, and find both in this order as well.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0014"
down_revision = "0013"

_TABLE, _NAME, _COLUMNS = "conversation_metadata", "idx_user_id", ["user_id", "tenant"]


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        return
    there = {index["name"]: index["column_names"] for index in inspect(connection).get_indexes(_TABLE)}
    if there.get(_NAME) != _COLUMNS:
        dropped = f"DROP INDEX {_NAME}, " if _NAME in there else ""
        op.execute(f"ALTER TABLE {_TABLE} {dropped}ADD INDEX {_NAME} ({', '.join(_COLUMNS)})")
