"""The sixth migration: tables for items of LangGraph's stores, for turns in flight, and for what is counted."""

from __future__ import annotations

# Items of LangGraph's stores (`head`: how the namespace begins, to search by), keys of turns in flight, and what is
# counted of a thread.
ITEMS_AND_TURNS = """
CREATE TABLE tk_store_items (
  item_key BLOB PRIMARY KEY,
  space BLOB NOT NULL,
  head BLOB NOT NULL,
  namespace BLOB NOT NULL,
  name BLOB NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT NOT NULL,
  value BLOB NOT NULL,
  facts BLOB NOT NULL,
  ttl_minutes REAL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER
);
CREATE INDEX tk_store_items_by_namespace ON tk_store_items (space, head, updated_at);
CREATE INDEX tk_store_items_by_user ON tk_store_items (tenant, user_id);
CREATE INDEX tk_store_items_by_expiry ON tk_store_items (expires_at);
CREATE TABLE tk_store_vectors (
  item_key BLOB NOT NULL,
  model BLOB NOT NULL,
  part INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (item_key, model, part)
) WITHOUT ROWID;
CREATE TRIGGER tk_store_vectors_of_item AFTER DELETE ON tk_store_items BEGIN
  DELETE FROM tk_store_vectors WHERE item_key = old.item_key; END;
CREATE TABLE tk_turn_keys (
  thread_key BLOB PRIMARY KEY,
  sealed BLOB NOT NULL,
  began_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tk_turn_keys_by_age ON tk_turn_keys (began_at);
CREATE TABLE tk_thread_documents (
  thread_key BLOB NOT NULL,
  document BLOB NOT NULL,
  PRIMARY KEY (thread_key, document)
) WITHOUT ROWID;
ALTER TABLE conversation_metadata ADD COLUMN cache_hits INTEGER NOT NULL DEFAULT 0;
"""
