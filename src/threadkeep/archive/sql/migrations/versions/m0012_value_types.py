"""Names of the classes whose values stand in checkpoints: which of them may be made anew."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_checkpoint_types (
  module TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (module, name)
);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_checkpoint_types (
  module VARBINARY(1000) NOT NULL,
  name VARBINARY(1000) NOT NULL,
  PRIMARY KEY (module, name)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
"""


def upgrade() -> None:
    op.execute((_POSTGRES if op.get_bind().dialect.name == "postgresql" else _MYSQL).strip().removesuffix(";"))
