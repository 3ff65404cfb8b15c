"""Threads of LangGraph: their metadata, checkpoints, what checkpoints refer to, and pending writes.

`thread_key` stands for tenant, user and thread id, `ns_key` for the namespace, so that ids of any length have a key;
ids themselves are escaped by us into text that every server can hold. A thread's row is what all else hangs on: it is
deleted with it, and nothing can be written to a thread that is gone. `last_activity_at` has no ON UPDATE: to mark a
thread as expired is no activity.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS conversation_metadata (
  thread_key BYTEA PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  thread_id TEXT COLLATE "C" NOT NULL,
  first_query TEXT,
  query_count BIGINT NOT NULL DEFAULT 0,
  context_count BIGINT NOT NULL DEFAULT 0,
  datasource_ids TEXT,
  access_level TEXT NOT NULL DEFAULT 'public' CHECK (access_level IN ('public', 'private', 'mixed')),
  started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  last_activity_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  expired_at TIMESTAMPTZ
);
CREATE INDEX IF NOT EXISTS conversation_metadata_idx_user_id ON conversation_metadata (tenant, user_id);
CREATE INDEX IF NOT EXISTS conversation_metadata_idx_last_activity ON conversation_metadata (last_activity_at);
CREATE INDEX IF NOT EXISTS conversation_metadata_idx_expired_at ON conversation_metadata (expired_at);
CREATE TABLE IF NOT EXISTS conversation_checkpoints (
  thread_key BYTEA NOT NULL REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE,
  ns_key BIGINT NOT NULL,
  checkpoint_id TEXT COLLATE "C" NOT NULL,
  thread_id TEXT COLLATE "C" NOT NULL,
  checkpoint_ns TEXT COLLATE "C" NOT NULL DEFAULT '',
  parent_checkpoint_id TEXT COLLATE "C",
  checkpoint_blob BYTEA NOT NULL,
  metadata_blob BYTEA,
  facts BYTEA,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (thread_key, ns_key, checkpoint_id)
);
CREATE INDEX IF NOT EXISTS conversation_checkpoints_idx_thread_created
  ON conversation_checkpoints (thread_key, created_at DESC);
CREATE INDEX IF NOT EXISTS conversation_checkpoints_idx_created_at ON conversation_checkpoints (created_at);
CREATE TABLE IF NOT EXISTS tk_checkpoint_items (
  thread_key BYTEA NOT NULL,
  strand BYTEA NOT NULL,
  start BIGINT NOT NULL,
  part INTEGER NOT NULL,
  stop BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (thread_key, strand, start, part)
);
CREATE TABLE IF NOT EXISTS tk_checkpoint_writes (
  thread_key BYTEA NOT NULL REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE,
  ns_key BIGINT NOT NULL,
  checkpoint_id TEXT COLLATE "C" NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  idx INTEGER NOT NULL,
  part INTEGER NOT NULL,
  task_path TEXT NOT NULL,
  channel TEXT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (thread_key, ns_key, checkpoint_id, task_id, idx, part)
);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS conversation_metadata (
  thread_key BINARY(16) NOT NULL PRIMARY KEY,
  tenant VARBINARY(1020) NOT NULL,
  user_id VARBINARY(1020) NOT NULL,
  thread_id LONGTEXT NOT NULL,
  first_query LONGTEXT,
  query_count BIGINT NOT NULL DEFAULT 0,
  context_count BIGINT NOT NULL DEFAULT 0,
  datasource_ids LONGTEXT,
  access_level ENUM('public', 'private', 'mixed') NOT NULL DEFAULT 'public',
  started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  last_activity_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  expired_at TIMESTAMP(6) NULL DEFAULT NULL,
  KEY idx_user_id (tenant, user_id),
  KEY idx_last_activity (last_activity_at),
  KEY idx_expired_at (expired_at)
);
CREATE TABLE IF NOT EXISTS conversation_checkpoints (
  thread_key BINARY(16) NOT NULL,
  ns_key BIGINT NOT NULL,
  checkpoint_id VARBINARY(1020) NOT NULL,
  thread_id LONGTEXT NOT NULL,
  checkpoint_ns LONGTEXT NOT NULL,
  parent_checkpoint_id VARBINARY(1020),
  checkpoint_blob LONGBLOB NOT NULL,
  metadata_blob LONGBLOB,
  facts LONGBLOB,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (thread_key, ns_key, checkpoint_id),
  KEY idx_thread_created (thread_key, created_at DESC),
  KEY idx_created_at (created_at),
  CONSTRAINT tk_checkpoints_of_thread FOREIGN KEY (thread_key)
    REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS tk_checkpoint_items (
  thread_key BINARY(16) NOT NULL,
  strand BINARY(16) NOT NULL,
  start BIGINT NOT NULL,
  part INT NOT NULL,
  stop BIGINT NOT NULL,
  data LONGBLOB NOT NULL,
  PRIMARY KEY (thread_key, strand, start, part)
);
CREATE TABLE IF NOT EXISTS tk_checkpoint_writes (
  thread_key BINARY(16) NOT NULL,
  ns_key BIGINT NOT NULL,
  checkpoint_id VARBINARY(1020) NOT NULL,
  task_id VARBINARY(1020) NOT NULL,
  idx INT NOT NULL,
  part INT NOT NULL,
  task_path LONGTEXT NOT NULL,
  channel LONGTEXT NOT NULL,
  data LONGBLOB NOT NULL,
  PRIMARY KEY (thread_key, ns_key, checkpoint_id, task_id, idx, part),
  CONSTRAINT tk_writes_of_thread FOREIGN KEY (thread_key)
    REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE
);
"""
_MYSQL_OPTIONS = ") ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    script = _POSTGRES if on_postgres else _MYSQL.replace("\n);", f"\n{_MYSQL_OPTIONS};")
    for statement in script.strip().removesuffix(";").split(";\n"):
        op.execute(statement)
