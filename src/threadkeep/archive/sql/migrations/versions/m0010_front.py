"""The hot store in front of the archive, and its mode: at most one row."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_front (
  slot INTEGER PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  durability TEXT COLLATE "C" NOT NULL,
  address TEXT NOT NULL,
  missed BIGINT NOT NULL DEFAULT 0
);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_front (
  slot INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL,
  durability VARCHAR(32) NOT NULL,
  address LONGTEXT NOT NULL,
  missed BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
"""


def upgrade() -> None:
    op.execute((_POSTGRES if op.get_bind().dialect.name == "postgresql" else _MYSQL).strip().removesuffix(";"))
