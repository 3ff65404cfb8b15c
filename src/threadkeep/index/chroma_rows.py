"""How messages' vectors look in Chroma: ids, what is written beside them, and the filters that find them again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.ports.backlog import MessageKey
from threadkeep.ports.embedder import EmbeddingModel, Vectors
from threadkeep.ports.vectors import MessageVectors, vector_id
from threadkeep.scope import Scope

_OURS = "threadkeep"


@dataclass(frozen=True, slots=True)
class Row:
    message: MessageVectors
    id: str
    vector: list[float]
    metadata: dict[str, str | int]


def rows_of(message: MessageVectors, vectors: Vectors) -> list[Row]:
    count = len(vectors)
    return [
        Row(message, vector_id(message.message_id, chunk, count), vector.tolist(), _metadata(message, chunk, count))
        for chunk, vector in enumerate(vectors)
    ]


def _metadata(message: MessageVectors, chunk: int, chunks: int) -> dict[str, str | int]:
    scope = message.scope
    return {
        "tenant": scope.tenant,
        "user_id": scope.user,
        "conversation_id": scope.require_conversation(),
        "message_id": message.message_id,
        "chunk": chunk,
        "chunks": chunks,
    }


def key_of(metadata: Mapping[str, Any]) -> MessageKey:
    return MessageKey(
        Scope(metadata["tenant"], metadata["user_id"], metadata["conversation_id"]), metadata["message_id"]
    )


def row_ids(rows: Sequence[Row], taken: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Message ids are unique in a conversation only: one that is taken gets its scope's digest added."""
    ids: list[str] = []
    given: set[str] = set()
    for row in rows:
        other = taken.get(row.id)
        mine = row.id not in given and (other is None or _same_message(other, row.metadata))
        ids.append(row.id if mine else f"{row.id}@{row.message.scope.digest().hex()}")
        given.add(row.id)
    return ids


def _same_message(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == other[key] for key in ("tenant", "user_id", "conversation_id", "message_id"))


def within(scope: Scope, message_id: str | None = None) -> dict[str, Any]:
    wanted = {"tenant": scope.tenant, "user_id": scope.user}
    if scope.conversation is not None:
        wanted["conversation_id"] = scope.conversation
    if message_id is not None:
        wanted["message_id"] = message_id
    return {"$and": [{key: {"$eq": value}} for key, value in wanted.items()]}


def collection_name(model: EmbeddingModel) -> str:
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", model.name).strip("-")[:80]
    digest = hashlib.blake2b(model.name.encode(), digest_size=4).hexdigest()
    return f"{_OURS}-{readable}-{model.dimensions}-{digest}"


def model_metadata(model: EmbeddingModel) -> dict[str, Any]:
    return {"hnsw:space": "cosine", f"{_OURS}_model": model.name, "dimensions": model.dimensions}


def model_in(metadata: Mapping[str, Any] | None) -> EmbeddingModel | None:
    """None for a collection that is not ours: the folder may be an application's own."""
    if not metadata or f"{_OURS}_model" not in metadata:
        return None
    return EmbeddingModel(str(metadata[f"{_OURS}_model"]), int(metadata["dimensions"]))
