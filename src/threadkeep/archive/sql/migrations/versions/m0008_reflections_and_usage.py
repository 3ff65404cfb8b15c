"""Reflections on turns, and what chat models were asked for."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_reflections (
  reflection_key BYTEA PRIMARY KEY,
  place BYTEA NOT NULL,
  owner BYTEA NOT NULL,
  kind SMALLINT NOT NULL,
  body BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS tk_reflections_by_place ON tk_reflections (place, created_at);
CREATE INDEX IF NOT EXISTS tk_reflections_by_owner ON tk_reflections (owner, created_at);
CREATE TABLE IF NOT EXISTS tk_model_usage (
  usage_key BYTEA PRIMARY KEY,
  owner BYTEA NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  calls BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  used_at BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS tk_model_usage_by_owner ON tk_model_usage (owner);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_reflections (
  reflection_key BINARY(16) NOT NULL PRIMARY KEY,
  place BINARY(16) NOT NULL,
  owner BINARY(16) NOT NULL,
  kind SMALLINT NOT NULL,
  body LONGBLOB NOT NULL,
  created_at BIGINT NOT NULL,
  KEY tk_reflections_by_place (place, created_at),
  KEY tk_reflections_by_owner (owner, created_at)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS tk_model_usage (
  usage_key BINARY(16) NOT NULL PRIMARY KEY,
  owner BINARY(16) NOT NULL,
  tenant VARBINARY(1020) NOT NULL,
  user_id VARBINARY(1020) NOT NULL,
  model VARBINARY(400) NOT NULL,
  calls BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  KEY tk_model_usage_by_owner (owner)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
"""


def upgrade() -> None:
    script = _POSTGRES if op.get_bind().dialect.name == "postgresql" else _MYSQL
    for statement in script.strip().removesuffix(";").split(";\n"):
        op.execute(statement)
