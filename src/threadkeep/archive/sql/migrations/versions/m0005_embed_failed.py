"""Messages that an embedder gave up on, and why. They go with their message."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_embed_failed (
  mid BIGINT NOT NULL REFERENCES tk_messages (mid) ON DELETE CASCADE,
  model BIGINT NOT NULL,
  reason TEXT NOT NULL,
  failed_at BIGINT NOT NULL,
  PRIMARY KEY (mid, model)
)
"""
_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_embed_failed (
  mid BIGINT NOT NULL,
  model BIGINT NOT NULL,
  reason LONGTEXT NOT NULL,
  failed_at BIGINT NOT NULL,
  PRIMARY KEY (mid, model),
  FOREIGN KEY (mid) REFERENCES tk_messages (mid) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
"""


def upgrade() -> None:
    op.execute(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _MYSQL)
