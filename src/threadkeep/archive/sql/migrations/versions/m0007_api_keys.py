"""API keys, each as a prefix and a digest."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_api_keys (
  prefix TEXT COLLATE "C" PRIMARY KEY,
  digest BYTEA NOT NULL,
  name TEXT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C",
  role TEXT COLLATE "C" NOT NULL,
  permissions TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);
CREATE INDEX IF NOT EXISTS tk_api_keys_by_tenant ON tk_api_keys (tenant, created_at);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_api_keys (
  prefix VARBINARY(32) NOT NULL PRIMARY KEY,
  digest VARBINARY(64) NOT NULL,
  name VARBINARY(400) NOT NULL,
  tenant VARBINARY(1020) NOT NULL,
  user_id VARBINARY(1020),
  role VARBINARY(32) NOT NULL,
  permissions VARBINARY(255) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  KEY tk_api_keys_by_tenant (tenant, created_at)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
"""


def upgrade() -> None:
    script = _POSTGRES if op.get_bind().dialect.name == "postgresql" else _MYSQL
    for statement in script.strip().removesuffix(";").split(";\n"):
        op.execute(statement)
