"""The eighth migration: reflections on turns, and what chat models were asked for."""

from __future__ import annotations

REFLECTIONS_AND_USAGE = """
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
