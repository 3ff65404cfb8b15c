"""The tables, as a short numbered list of migrations. Only ever add to it.

Every name starts with `tk_` or `conversation_`: the file may be an application's own.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from threadkeep.db.sqlite_file import our_errors
from threadkeep.errors import SchemaTooNew

# `content` is TEXT, or a BLOB when the text holds lone surrogates, which UTF-8 cannot carry.
# Times are whole microseconds since 1970 UTC. Order is `seq`; `activity`, a counter of each owner's own, orders
# conversations without a clock (row ids would not do: those of erased rows are given again).
# The terms come normalised and apart by spaces, so to the tokenizer everything else is part of a word: where it would
# split one, `detail=none` could not search for it.
_V1 = """
CREATE TABLE tk_owners (
  uid INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  UNIQUE (tenant, user)
);
CREATE TABLE tk_conversations (
  cid INTEGER PRIMARY KEY,
  uid INTEGER NOT NULL,
  conversation TEXT NOT NULL,
  title TEXT,
  language TEXT,
  intent TEXT,
  status TEXT NOT NULL DEFAULT 'active',
  last_seq INTEGER NOT NULL DEFAULT 0,
  messages INTEGER NOT NULL DEFAULT 0,
  activity INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  session_started_at INTEGER NOT NULL,
  session_expires_at INTEGER NOT NULL,
  UNIQUE (uid, conversation)
);
CREATE INDEX tk_conversations_by_activity ON tk_conversations (uid, activity);
CREATE TABLE tk_messages (
  mid INTEGER PRIMARY KEY,
  cid INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  modality TEXT NOT NULL,
  content NOT NULL,
  language TEXT,
  meta TEXT,
  ts INTEGER NOT NULL,
  UNIQUE (cid, seq),
  UNIQUE (cid, id)
);
CREATE TABLE tk_appends (
  digest BLOB PRIMARY KEY,
  cid INTEGER NOT NULL,
  payload BLOB NOT NULL,
  receipt TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX tk_appends_by_conversation ON tk_appends (cid);
CREATE TABLE tk_generations (
  place BLOB PRIMARY KEY,
  generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tk_tombstones (
  digest BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE VIRTUAL TABLE tk_terms USING fts5 (
  terms, detail=none, columnsize=0, tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
"""

# LangGraph threads. `thread_key` stands for tenant, user and thread id, `ns_key` for the namespace; ids are escaped so
# that they are valid text. `tk_checkpoint_items` holds what checkpoints refer to, piece by piece: see the adapter.
_V2 = """
CREATE TABLE conversation_metadata (
  thread_key BLOB PRIMARY KEY,
  tenant TEXT NOT NULL,
  user_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  first_query,
  query_count INTEGER NOT NULL DEFAULT 0,
  context_count INTEGER NOT NULL DEFAULT 0,
  datasource_ids TEXT,
  access_level TEXT NOT NULL DEFAULT 'public' CHECK (access_level IN ('public', 'private', 'mixed')),
  started_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  expired_at INTEGER
) WITHOUT ROWID;
CREATE INDEX conversation_metadata_idx_user_id ON conversation_metadata (tenant, user_id);
CREATE INDEX conversation_metadata_idx_last_activity ON conversation_metadata (last_activity_at);
CREATE INDEX conversation_metadata_idx_expired_at ON conversation_metadata (expired_at);
CREATE TABLE conversation_checkpoints (
  thread_key BLOB NOT NULL,
  ns_key INTEGER NOT NULL,
  checkpoint_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL DEFAULT '',
  parent_checkpoint_id TEXT,
  checkpoint_blob BLOB NOT NULL,
  metadata_blob BLOB,
  facts BLOB,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (thread_key, ns_key, checkpoint_id)
);
CREATE INDEX conversation_checkpoints_idx_thread_created ON conversation_checkpoints (thread_key, created_at DESC);
CREATE INDEX conversation_checkpoints_idx_created_at ON conversation_checkpoints (created_at);
CREATE TABLE tk_checkpoint_items (
  thread_key BLOB NOT NULL,
  strand BLOB NOT NULL,
  start INTEGER NOT NULL,
  part INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (thread_key, strand, start, part)
);
CREATE TABLE tk_checkpoint_writes (
  thread_key BLOB NOT NULL,
  ns_key INTEGER NOT NULL,
  checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  idx INTEGER NOT NULL,
  part INTEGER NOT NULL,
  task_path TEXT NOT NULL,
  channel TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (thread_key, ns_key, checkpoint_id, task_id, idx, part)
);
"""

# Vectors are clustered by owner, because a search reads all of one owner's. How many were ever added and removed shows
# a reader whether the vectors it has in memory are still those of the file.
_V3 = """
CREATE TABLE tk_models (
  model INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  encoding TEXT NOT NULL,
  UNIQUE (name, dimensions, encoding)
);
CREATE TABLE tk_vectors (
  uid INTEGER NOT NULL,
  model INTEGER NOT NULL,
  mid INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (uid, model, mid, chunk)
) WITHOUT ROWID;
CREATE INDEX tk_vectors_by_message ON tk_vectors (mid);
CREATE TABLE tk_vector_changes (
  uid INTEGER NOT NULL,
  model INTEGER NOT NULL,
  added INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  PRIMARY KEY (uid, model)
) WITHOUT ROWID;
CREATE TRIGGER tk_vectors_added AFTER INSERT ON tk_vectors BEGIN
  INSERT INTO tk_vector_changes VALUES (new.uid, new.model, 1, 0)
  ON CONFLICT (uid, model) DO UPDATE SET added = added + 1; END;
CREATE TRIGGER tk_vectors_removed AFTER DELETE ON tk_vectors BEGIN
  UPDATE tk_vector_changes SET removed = removed + 1 WHERE uid = old.uid AND model = old.model; END;
CREATE TRIGGER tk_vectors_of_message AFTER DELETE ON tk_messages BEGIN
  DELETE FROM tk_vectors WHERE mid = old.mid; END;
CREATE TABLE tk_documents (
  did INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  document_id TEXT NOT NULL,
  datasource TEXT NOT NULL,
  access TEXT NOT NULL,
  owner TEXT,
  title NOT NULL,
  digest BLOB NOT NULL,
  version INTEGER NOT NULL,
  chunks INTEGER NOT NULL,
  indexed_at INTEGER NOT NULL,
  UNIQUE (tenant, document_id)
);
CREATE INDEX tk_documents_by_owner ON tk_documents (tenant, owner);
CREATE TABLE tk_document_readers (
  did INTEGER NOT NULL,
  user TEXT NOT NULL,
  PRIMARY KEY (did, user)
) WITHOUT ROWID;
CREATE TABLE tk_document_parts (
  did INTEGER NOT NULL,
  part INTEGER NOT NULL,
  heading NOT NULL,
  content NOT NULL,
  PRIMARY KEY (did, part)
);
CREATE TABLE tk_chunks (
  did INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  part INTEGER NOT NULL,
  content NOT NULL,
  PRIMARY KEY (did, chunk)
);
CREATE TABLE tk_chunk_words (
  word INTEGER NOT NULL,
  did INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  PRIMARY KEY (word, did, chunk)
) WITHOUT ROWID;
CREATE INDEX tk_chunk_words_by_document ON tk_chunk_words (did);
CREATE TABLE tk_chunk_vectors (
  did INTEGER NOT NULL,
  model INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (did, model, chunk)
) WITHOUT ROWID;
CREATE TRIGGER tk_document_gone AFTER DELETE ON tk_documents BEGIN
  DELETE FROM tk_document_readers WHERE did = old.did; DELETE FROM tk_document_parts WHERE did = old.did;\
  DELETE FROM tk_chunks WHERE did = old.did; DELETE FROM tk_chunk_words WHERE did = old.did;\
  DELETE FROM tk_chunk_vectors WHERE did = old.did; END;
"""

# The length in words of a conversation's indexed messages together. `tk_holding` counts how many messages hold a
# term; it keeps nothing of its own. `tk_indexes` says by which version of the normaliser terms were made, and while
# they are made anew, how far that has come.
_V4 = """
ALTER TABLE tk_conversations ADD COLUMN terms INTEGER NOT NULL DEFAULT 0;
UPDATE tk_conversations SET terms = coalesce((
  SELECT sum(length(t.terms) - length(replace(t.terms, ' ', '')) + (t.terms <> ''))
  FROM tk_messages m JOIN tk_terms t ON t.rowid = m.mid WHERE m.cid = tk_conversations.cid), 0);
CREATE VIRTUAL TABLE tk_holding USING fts5vocab (tk_terms, row);
CREATE TABLE tk_indexes (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  reached INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO tk_indexes SELECT 'terms', 0, 0 WHERE EXISTS (SELECT 1 FROM tk_messages);
"""

# Messages that were given up on by an embedder, and why. The backlog itself is no table: it is what has no vector.
_V5 = """
CREATE TABLE tk_embed_failed (
  mid INTEGER NOT NULL,
  model INTEGER NOT NULL,
  reason TEXT NOT NULL,
  failed_at INTEGER NOT NULL,
  PRIMARY KEY (mid, model)
) WITHOUT ROWID;
CREATE TRIGGER tk_embed_failed_of_message AFTER DELETE ON tk_messages BEGIN
  DELETE FROM tk_embed_failed WHERE mid = old.mid; END;
"""

# Items of LangGraph's stores (`head`: how the namespace begins, to search by), keys of turns in flight, and what is
# counted of a thread.
_ITEMS_AND_TURNS = """
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


_API_KEYS = """
CREATE TABLE tk_api_keys (
  prefix TEXT PRIMARY KEY,
  digest BLOB NOT NULL,
  name TEXT NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT,
  role TEXT NOT NULL,
  permissions TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;
CREATE INDEX tk_api_keys_by_tenant ON tk_api_keys (tenant, created_at);
"""


_REFLECTIONS_AND_USAGE = """
CREATE TABLE tk_reflections (
  reflection_key BLOB PRIMARY KEY,
  place BLOB NOT NULL,
  owner BLOB NOT NULL,
  kind INTEGER NOT NULL,
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tk_reflections_by_place ON tk_reflections (place, created_at);
CREATE INDEX tk_reflections_by_owner ON tk_reflections (owner, created_at);
CREATE TABLE tk_model_usage (
  usage_key BLOB PRIMARY KEY,
  owner BLOB NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT NOT NULL,
  model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  used_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tk_model_usage_by_owner ON tk_model_usage (owner);
"""

# Who wrote each message and when it arrived; NULL in rows from before. Until now `write` allowed writing as the
# assistant: keys of services and administrators keep that right, a plain user's key loses it.
_ORIGIN = """
ALTER TABLE tk_messages ADD COLUMN origin TEXT;
ALTER TABLE tk_messages ADD COLUMN stored_at INTEGER;
UPDATE tk_api_keys SET permissions = permissions || ' write_as' WHERE (user_id IS NULL OR role <> 'USER')
  AND ' ' || permissions || ' ' LIKE '% write %' AND instr(permissions, 'write_as') = 0;
"""

# At most one row: the hot store in front of this archive, and its mode.
_FRONT = """
CREATE TABLE tk_front (
  slot INTEGER PRIMARY KEY CHECK (slot = 1),
  id TEXT NOT NULL,
  durability TEXT NOT NULL,
  address TEXT NOT NULL,
  missed INTEGER NOT NULL DEFAULT 0
);
"""

# Keys of the threads that a thread was copied from, the first one first: who erases one of them erases its copies.
_COPIES = """
ALTER TABLE conversation_metadata ADD COLUMN copied_from BLOB;
"""

# Classes whose values stand in checkpoints: which of them may be made anew.
_VALUE_TYPES = """
CREATE TABLE tk_checkpoint_types (
  module TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (module, name)
) WITHOUT ROWID;
"""

# The column has the name that it has on servers, so that one statement serves every database.
_OWNERS_USER_ID = "ALTER TABLE tk_owners RENAME COLUMN user TO user_id"

MIGRATIONS = (
    _V1,
    _V2,
    _V3,
    _V4,
    _V5,
    _ITEMS_AND_TURNS,
    _API_KEYS,
    _REFLECTIONS_AND_USAGE,
    _ORIGIN,
    _FRONT,
    _COPIES,
    _VALUE_TYPES,
    _OWNERS_USER_ID,
)
NEWEST = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the file to `NEWEST`, all or nothing; several processes may try at once. Raises `SchemaTooNew`."""
    if _version(connection, path) == NEWEST:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in MIGRATIONS[_version(connection, path) :]:
            for statement in script.split(";\n"):
                connection.execute(statement)
        connection.execute("CREATE TABLE IF NOT EXISTS tk_schema (version INTEGER NOT NULL)")
        connection.execute("DELETE FROM tk_schema")
        connection.execute("INSERT INTO tk_schema VALUES (?)", (NEWEST,))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def version_of(path: str) -> int:
    """Without changing the file; 0 where there are no tables of ours. Raises `SchemaTooNew`."""
    with our_errors(path):
        connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
        try:
            return _version(connection, path)
        finally:
            connection.close()


def _version(connection: sqlite3.Connection, path: str) -> int:
    """A table of our own, not `PRAGMA user_version`: the file may belong to an application too."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tk_schema'").fetchone():
        return 0
    version: int = connection.execute("SELECT version FROM tk_schema").fetchone()[0]
    if version > NEWEST:
        raise SchemaTooNew(
            f"{path}: written by a newer Threadkeep (schema {version}, this one knows {NEWEST}); upgrade threadkeep"
        )
    return version
