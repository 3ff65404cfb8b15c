"""Items of LangGraph's stores, keys of turns in flight, and what is counted of a thread.

`item_key` stands for whose item it is, its namespace and its name; `head` is the beginning of the namespace, to search
by. A turn's key goes with the turn, and with it whatever was encrypted under it.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0006"
down_revision = "0005"

_POSTGRES = """
CREATE TABLE IF NOT EXISTS tk_store_items (
  item_key BYTEA PRIMARY KEY,
  space BYTEA NOT NULL,
  head BYTEA NOT NULL,
  namespace BYTEA NOT NULL,
  name BYTEA NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  value BYTEA NOT NULL,
  facts BYTEA NOT NULL,
  ttl_minutes DOUBLE PRECISION,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT
);
CREATE INDEX IF NOT EXISTS tk_store_items_by_namespace ON tk_store_items (space, head, updated_at);
CREATE INDEX IF NOT EXISTS tk_store_items_by_user ON tk_store_items (tenant, user_id);
CREATE INDEX IF NOT EXISTS tk_store_items_by_expiry ON tk_store_items (expires_at);
CREATE TABLE IF NOT EXISTS tk_store_vectors (
  item_key BYTEA NOT NULL REFERENCES tk_store_items (item_key) ON DELETE CASCADE,
  model BYTEA NOT NULL,
  part INTEGER NOT NULL,
  vector BYTEA NOT NULL,
  PRIMARY KEY (item_key, model, part)
);
CREATE TABLE IF NOT EXISTS tk_turn_keys (
  thread_key BYTEA PRIMARY KEY,
  sealed BYTEA NOT NULL,
  began_at BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS tk_turn_keys_by_age ON tk_turn_keys (began_at);
CREATE TABLE IF NOT EXISTS tk_thread_documents (
  thread_key BYTEA NOT NULL REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE,
  document BYTEA NOT NULL,
  PRIMARY KEY (thread_key, document)
);
"""

_MYSQL = """
CREATE TABLE IF NOT EXISTS tk_store_items (
  item_key BINARY(16) NOT NULL PRIMARY KEY,
  space BINARY(16) NOT NULL,
  head VARBINARY(255) NOT NULL,
  namespace LONGBLOB NOT NULL,
  name LONGBLOB NOT NULL,
  tenant VARBINARY(1020) NOT NULL,
  user_id VARBINARY(1020) NOT NULL,
  value LONGBLOB NOT NULL,
  facts LONGBLOB NOT NULL,
  ttl_minutes DOUBLE,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT,
  KEY tk_store_items_by_namespace (space, head, updated_at),
  KEY tk_store_items_by_user (tenant, user_id),
  KEY tk_store_items_by_expiry (expires_at)
);
CREATE TABLE IF NOT EXISTS tk_store_vectors (
  item_key BINARY(16) NOT NULL,
  model BINARY(16) NOT NULL,
  part INT NOT NULL,
  vector LONGBLOB NOT NULL,
  PRIMARY KEY (item_key, model, part),
  CONSTRAINT tk_vectors_of_item FOREIGN KEY (item_key) REFERENCES tk_store_items (item_key) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS tk_turn_keys (
  thread_key BINARY(16) NOT NULL PRIMARY KEY,
  sealed LONGBLOB NOT NULL,
  began_at BIGINT NOT NULL,
  KEY tk_turn_keys_by_age (began_at)
);
CREATE TABLE IF NOT EXISTS tk_thread_documents (
  thread_key BINARY(16) NOT NULL,
  document BINARY(16) NOT NULL,
  PRIMARY KEY (thread_key, document),
  CONSTRAINT tk_documents_of_thread FOREIGN KEY (thread_key)
    REFERENCES conversation_metadata (thread_key) ON DELETE CASCADE
);
"""
_MYSQL_OPTIONS = ") ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_CACHE_HITS = "ALTER TABLE conversation_metadata ADD COLUMN cache_hits BIGINT NOT NULL DEFAULT 0"


def upgrade() -> None:
    connection = op.get_bind()
    on_postgres = connection.dialect.name == "postgresql"
    script = _POSTGRES if on_postgres else _MYSQL.replace("\n);", f"\n{_MYSQL_OPTIONS};")
    for statement in script.strip().removesuffix(";").split(";\n"):
        op.execute(statement)
    if "cache_hits" not in {column["name"] for column in inspect(connection).get_columns("conversation_metadata")}:
        op.execute(_CACHE_HITS)
