"""The seventh migration: API keys, each as a prefix and a digest."""

from __future__ import annotations

API_KEYS = """
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
