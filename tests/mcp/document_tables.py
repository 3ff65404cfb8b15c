"""The tables of the retrieval design as its own migration makes them, word for word, and rows as its services write."""

from __future__ import annotations

import json
from typing import Any

MIGRATION = (
    """
CREATE TABLE IF NOT EXISTS conversation_checkpoints (
  thread_id VARCHAR(255) NOT NULL,
  checkpoint_id VARCHAR(255) NOT NULL,
  checkpoint_ns VARCHAR(255) DEFAULT '',
  parent_checkpoint_id VARCHAR(255),
  checkpoint_blob MEDIUMTEXT NOT NULL,
  metadata_blob TEXT,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (thread_id, checkpoint_id),
  INDEX idx_thread_created (thread_id, created_at DESC),
  INDEX idx_created_at (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci
""",
    """
CREATE TABLE IF NOT EXISTS conversation_metadata (
  thread_id VARCHAR(255) PRIMARY KEY,
  user_id VARCHAR(255),
  first_query TEXT,
  query_count INT DEFAULT 0,
  context_count INT DEFAULT 0,
  datasource_ids JSON,
  access_level ENUM('public', 'private', 'mixed') DEFAULT 'public',
  started_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  last_activity_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  expired_at TIMESTAMP NULL,
  INDEX idx_user_id (user_id),
  INDEX idx_last_activity (last_activity_at),
  INDEX idx_expired_at (expired_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci
""",
)


def state(*queries: str, user: str | None = None, cached: bool = False) -> dict[str, Any]:
    """As the design's appendix shows it, with one context for each query."""
    return {
        "queries": [
            {"query": query, "timestamp": f"2025-11-14T10:0{number}:00Z", "topK": 10}
            for number, query in enumerate(queries)
        ],
        "retrievedContexts": [
            {
                "parentChunkId": f"chunk-{number}",
                "documentId": f"doc-{number}",
                "content": "RAG combines retrieval with generation...",
                "score": 0.92,
                "timestamp": f"2025-11-14T10:0{number}:01Z",
                "queryIndex": number,
            }
            for number in range(len(queries))
        ],
        "userId": user,
        "datasourceIds": ["ds-1", "ds-2"],
        "contexts": [{"anything": "else"}],
        "cached": cached,
    }


def enriched(query: str, *before: str) -> str:
    """What the design's `saveConversationHistory` stores of a follow-up: all that it was searched with."""
    told = "\n".join(f"- {one}" for one in before)
    return (
        f"Previous queries in this conversation:\n{told}\n\nRecent retrieved context:\n- RAG combines...\n\n"
        f"Current query: {query}"
    )


def checkpoint(thread: str, id_: str, values: dict[str, Any] | str, *, at: str = "2025-11-14 10:00:00") -> str:
    """A statement that stores `JSON.stringify(checkpoint)`; a text is stored as it is."""
    whole = {
        "v": 1,
        "id": id_,
        "ts": f"{at.replace(' ', 'T')}.000Z",
        "channel_values": values,
        "channel_versions": {"queries": 3},
        "versions_seen": {},
    }
    blob = values if isinstance(values, str) else json.dumps(whole)
    told = json.dumps({"source": "loop", "step": 10, "writes": {}})
    return (
        "INSERT INTO conversation_checkpoints (thread_id, checkpoint_id, checkpoint_blob, metadata_blob, created_at)"
        f" VALUES ({_quoted(thread)}, {_quoted(id_)}, {_quoted(blob)}, {_quoted(told)}, '{at}')"
    )


def conversation(thread: str, user: str | None, first_query: str, queries: int) -> str:
    named = "NULL" if user is None else _quoted(user)
    return (
        "INSERT INTO conversation_metadata"
        " (thread_id, user_id, first_query, query_count, context_count, datasource_ids, access_level, started_at)"
        f" VALUES ({_quoted(thread)}, {named}, {_quoted(first_query)}, {queries}, {queries}, '[\"ds-1\"]', 'private',"
        " '2025-11-14 09:59:00')"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
