"""Vectors in Chroma: a folder that this process alone uses, or a server.

Chroma holds ids, scopes and vectors, never text; it is given vectors, so it loads no model of its own and downloads
none. Each embedding model has a collection of its own. A vector's id is the message's (`{message_id}#chunk_{i}` for
longer messages), unless another conversation's message has taken it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from threadkeep.errors import StoreUnavailable
from threadkeep.index.chroma_client import connected, is_missing, our_errors, release
from threadkeep.model import Erased
from threadkeep.ports.index import MessageKey, MessageVectors, VectorHit, vector_id
from threadkeep.ports.models import EmbeddingModel, Vector, Vectors
from threadkeep.recall.vectors import fitting
from threadkeep.scope import Scope

_OURS = "threadkeep"


@dataclass(frozen=True, slots=True)
class Row:
    message: MessageVectors
    id: str
    vector: list[float]
    metadata: dict[str, str | int]


def rows_of(message: MessageVectors, vectors: Vectors) -> list[Row]:
    count, scope = len(vectors), message.scope
    metadata: dict[str, str | int] = {
        "tenant": scope.tenant,
        "user_id": scope.user,
        "conversation_id": scope.require_conversation(),
        "message_id": message.message_id,
    }
    return [
        Row(
            message,
            vector_id(message.message_id, chunk, count),
            vector.tolist(),
            metadata | {"chunk": chunk, "chunks": count},
        )
        for chunk, vector in enumerate(vectors)
    ]


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
        same = other is None or all(
            other.get(key) == row.metadata[key] for key in ("tenant", "user_id", "conversation_id", "message_id")
        )
        mine = row.id not in given and same
        ids.append(row.id if mine else f"{row.id}@{row.message.scope.digest().hex()}")
        given.add(row.id)
    return ids


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


T = TypeVar("T")
_AT_ONCE = 1_000  # well below what any Chroma takes in a call
_THREADS = 4


class ChromaVectors:
    """`where` is a folder, or `http://host:port`. Nothing is opened before the first call.

    It knows nothing of the archive: after embedding a message the worker checks whether it was erased, and deletes it
    here if so. Raise `StoreUnavailable` while a server is down.
    """

    def __init__(self, where: str, *, timeout: float = 30.0) -> None:
        self.location = where
        self._timeout = timeout
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="threadkeep-chroma")

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        rows = [row for message in messages for row in rows_of(message, fitting(message.vectors, model))]
        if messages:
            await self._run(lambda client: _upsert(client, model, messages, rows))
        return len(messages)

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        looked_for = fitting(vector, model)[0].tolist()
        return await self._run(lambda client: _search(client, scope, model, looked_for, k))

    async def delete(self, scope: Scope, message_id: str) -> int:
        scope.require_conversation()
        return await self._run(lambda client: _delete_everywhere(client, within(scope, message_id)))

    async def erase(self, scope: Scope) -> Erased:
        count = await self._run(lambda client: _delete_everywhere(client, within(scope)))
        return Erased(count, count)

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        return await self._run(lambda client: _models(client, scope))

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        return await self._run(lambda client: _models_of(client, user.whole_user))

    async def held(self, model: EmbeddingModel, messages: Sequence[MessageKey]) -> set[MessageKey]:
        """Those of the messages that have all of their vectors here."""
        return await self._run(lambda client: _held(client, model, messages))

    async def page(self, offset: int, size: int) -> Sequence[MessageKey] | None:
        """Messages that have any vector here, whatever the model; None past the last page."""
        return await self._run(lambda client: _page(client, offset, size))

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._run(lambda client: _forget(client, model))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(release, client)
        self._threads.shutdown(wait=False)

    async def _run(self, work: Callable[[Any], T]) -> T:
        """Chroma's client blocks and knows no deadline: it works in threads of its own, and we wait only so long."""
        loop = asyncio.get_running_loop()
        with our_errors(self.location):
            try:
                async with asyncio.timeout(self._timeout):
                    async with self._opening:
                        if self._client is None:
                            self._client = await loop.run_in_executor(self._threads, connected, self.location)
                    return await loop.run_in_executor(self._threads, work, self._client)
            except TimeoutError:
                raise StoreUnavailable(f"chroma: did not answer within {self._timeout:g} s") from None


def _collection(client: Any, model: EmbeddingModel) -> Any | None:
    try:
        return client.get_collection(collection_name(model), embedding_function=None)
    except Exception as error:
        if is_missing(error):
            return None
        raise


def _upsert(client: Any, model: EmbeddingModel, messages: Sequence[MessageVectors], rows: Sequence[Row]) -> None:
    collection = client.get_or_create_collection(
        collection_name(model), metadata=model_metadata(model), embedding_function=None
    )
    for start in range(0, len(rows), _AT_ONCE):
        batch = rows[start : start + _AT_ONCE]
        taken = collection.get(ids=[row.id for row in batch], include=["metadatas"])
        ids = row_ids(batch, dict(zip(taken["ids"], taken["metadatas"], strict=True)))
        collection.upsert(ids=ids, embeddings=[row.vector for row in batch], metadatas=[row.metadata for row in batch])
    for message in messages:
        _delete_older(collection, message, [row for row in rows if row.message is message])


def _delete_older(collection: Any, message: MessageVectors, rows: Sequence[Row]) -> None:
    """What a longer or shorter text of the same message left behind. After the new rows: a crash leaves too much."""
    found = collection.get(where=within(message.scope, message.message_id), include=["metadatas"])
    stale = [
        id_
        for id_, metadata in zip(found["ids"], found["metadatas"], strict=True)
        if metadata["chunk"] >= len(rows) or metadata["chunks"] != len(rows)
    ]
    if stale:
        collection.delete(ids=stale)


def _search(client: Any, scope: Scope, model: EmbeddingModel, vector: list[float], k: int) -> tuple[VectorHit, ...]:
    collection = _collection(client, model)
    if collection is None:
        return ()
    wanted = k
    while True:
        answer = collection.query(
            query_embeddings=[vector], n_results=wanted, where=within(scope), include=["metadatas", "distances"]
        )
        hits: dict[tuple[str, str], VectorHit] = {}
        for metadata, distance in zip(answer["metadatas"][0], answer["distances"][0], strict=True):
            key = metadata["conversation_id"], metadata["message_id"]
            hits.setdefault(key, VectorHit(*key, metadata["chunk"], 1 - float(distance)))
        if len(hits) >= k or len(answer["ids"][0]) < wanted:
            return tuple(hits.values())[:k]
        wanted *= 4  # chunks of few messages filled it


def _ours(client: Any) -> list[Any]:
    return [one for one in client.list_collections() if model_in(one.metadata) is not None]


def _delete_everywhere(client: Any, where: dict[str, Any]) -> int:
    count = 0
    for collection in _ours(client):
        ids: list[str] = collection.get(where=where, include=[])["ids"]
        for start in range(0, len(ids), _AT_ONCE):
            collection.delete(ids=ids[start : start + _AT_ONCE])
        count += len(ids)
    return count


def _models(client: Any, scope: Scope | None) -> dict[EmbeddingModel, int]:
    counted: dict[EmbeddingModel, int] = {}
    for collection in _ours(client):
        where = None if scope is None else within(scope)
        metadatas = collection.get(where=where, include=["metadatas"])["metadatas"]
        messages = {
            (metadata["tenant"], metadata["user_id"], metadata["conversation_id"], metadata["message_id"])
            for metadata in metadatas
        }
        model = model_in(collection.metadata)
        if messages and model is not None:
            counted[model] = len(messages)
    return counted


def _models_of(client: Any, user: Scope) -> list[EmbeddingModel]:
    held = [one for one in _ours(client) if one.get(where=within(user), limit=1, include=[])["ids"]]
    return [model for one in held if (model := model_in(one.metadata)) is not None]


def _held(client: Any, model: EmbeddingModel, messages: Sequence[MessageKey]) -> set[MessageKey]:
    collection = _collection(client, model)
    if collection is None or not messages:
        return set()
    found = Counter[tuple[MessageKey, int]]()
    ids = sorted({message.message_id for message in messages})
    for start in range(0, len(ids), _AT_ONCE):
        where = {"message_id": {"$in": ids[start : start + _AT_ONCE]}}
        found.update(
            (key_of(one), one["chunks"]) for one in collection.get(where=where, include=["metadatas"])["metadatas"]
        )
    return {key for (key, chunks), count in found.items() if count >= chunks} & set(messages)


def _page(client: Any, offset: int, size: int) -> list[MessageKey] | None:
    pages = [one.get(limit=size, offset=offset, include=["metadatas"])["metadatas"] for one in _ours(client)]
    return list(dict.fromkeys(key_of(metadata) for page in pages for metadata in page)) if any(pages) else None


def _forget(client: Any, model: EmbeddingModel) -> int:
    collection = _collection(client, model)
    if collection is None:
        return 0
    count: int = collection.count()
    client.delete_collection(collection_name(model))
    return count
