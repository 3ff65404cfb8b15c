"""The two tables of a retrieval service that kept its conversations in MySQL by itself: its rows become ours.

Their names are those of two tables of ours; their keys, collation and blobs are not. So they are renamed, ours are
made, and one thread after another is moved. Then they are dropped, so that an erasure needs to search one table. Of a
blob, the JSON of a graph's state, only `queries` (redacted), `retrievedContexts` and counts of both and of cache hits
stay. MySQL and MariaDB commit most of these steps by themselves: each may meet its own result, and a thread is moved
whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, inspect, text

from threadkeep.ports.checkpoints import taken_over_body, taken_over_metadata
from threadkeep.ports.threads import Thread, documents_of, escaped, ns_key
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope

Redact = Callable[[Scope, str], str]

THEIRS: Mapping[str, frozenset[str]] = {
    "conversation_checkpoints": frozenset(
        {"thread_id", "checkpoint_id", "checkpoint_ns", "parent_checkpoint_id", "checkpoint_blob", "metadata_blob"}
        | {"created_at", "updated_at"}
    ),
    "conversation_metadata": frozenset(
        {"thread_id", "user_id", "first_query", "query_count", "context_count", "datasource_ids", "access_level"}
        | {"started_at", "last_activity_at", "expired_at"}
    ),
}
"""Columns of their tables, by the names that are ours as well."""

_CHECKPOINTS, _METADATA = (f"tk_former_{name}" for name in THEIRS)
_BY_TIME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")  # a UUID of version 6
_ENRICHED, _ASKED = "Previous queries in this conversation:", "\nCurrent query: "
_LONGEST_QUERY = 1_000  # characters
_TOP_K = 10

# Times go from table to table: no session's time zone comes between.
_COMPLETE = (
    f"INSERT INTO {_METADATA} (thread_id, started_at, last_activity_at)"  # noqa: S608
    f" SELECT thread_id, min(created_at), max(updated_at) FROM {_CHECKPOINTS}"
    f" WHERE thread_id NOT IN (SELECT thread_id FROM {_METADATA}) GROUP BY thread_id"
)
_MOVE_THREAD = (
    "INSERT INTO conversation_metadata (thread_key, tenant, user_id, thread_id, first_query, query_count,"  # noqa: S608
    " context_count, cache_hits, datasource_ids, access_level, started_at, last_activity_at, expired_at)"
    " SELECT :key, :tenant, :user, :thread, :first, GREATEST(coalesce(query_count, 0), :queries),"
    " GREATEST(coalesce(context_count, 0), :contexts), :hits, datasource_ids, coalesce(access_level, 'public'),"
    " coalesce(started_at, CURRENT_TIMESTAMP(6)), coalesce(last_activity_at, CURRENT_TIMESTAMP(6)), expired_at"
    f" FROM {_METADATA} WHERE thread_id = :id"
)
_MOVE_CHECKPOINT = (
    "INSERT INTO conversation_checkpoints (thread_key, ns_key, checkpoint_id, thread_id, checkpoint_ns,"  # noqa: S608
    " parent_checkpoint_id, checkpoint_blob, metadata_blob, created_at, updated_at)"
    " SELECT :key, :ns, :new, :thread, :ns_name, :parent, :body, :metadata,"
    " coalesce(created_at, CURRENT_TIMESTAMP(6)), coalesce(updated_at, CURRENT_TIMESTAMP(6))"
    f" FROM {_CHECKPOINTS} WHERE thread_id = :id AND checkpoint_id = :old"
)
_NOTE_DOCUMENT = "INSERT INTO tk_thread_documents (thread_key, document) VALUES (:key, :document)"


class _Made(NamedTuple):
    """A checkpoint of theirs, by when it was made. Their times have whole seconds, which several may share."""

    at: str
    ts: str
    queries: int
    id: str
    cached: bool


def set_aside(connection: Connection) -> None:
    """Rename their tables, if it is they that have the names: both, with the columns above and no other."""
    inspector = inspect(connection)
    if connection.dialect.name != "postgresql" and all(map(inspector.has_table, THEIRS)):
        found = {name: {column["name"] for column in inspector.get_columns(name)} for name in THEIRS}
        if found == THEIRS:
            renamed = ", ".join(f"{name} TO tk_former_{name}" for name in THEIRS)
            connection.execute(text(f"RENAME TABLE {renamed}"))


def take_over(connection: Connection, redact: Redact) -> None:
    """What was set aside, into tables of ours. A thread without a user is `DEFAULT_USER`'s."""
    if all(map(inspect(connection).has_table, (_CHECKPOINTS, _METADATA))):
        for name in (_CHECKPOINTS, _METADATA):  # ids are compared byte by byte from here on
            connection.execute(text(f"ALTER TABLE {name} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
        connection.execute(text(_COMPLETE))
        for (thread_id,) in connection.execute(text(f"SELECT thread_id FROM {_METADATA}")).all():  # noqa: S608
            _move(connection, str(thread_id), redact)
            connection.execute(text("COMMIT"))
    for name in filter(
        inspect(connection).has_table, (_CHECKPOINTS, _METADATA)
    ):  # a table that is not there: a warning
        connection.execute(text(f"DROP TABLE {name}"))


def _move(connection: Connection, id_: str, redact: Redact) -> None:
    query = text(f"SELECT user_id, first_query, datasource_ids, access_level FROM {_METADATA} WHERE thread_id = :id")  # noqa: S608
    user, first, *read = connection.execute(query, {"id": id_}).one()
    made = sorted(_made(connection, id_))
    newest = _state(connection, id_, made[-1].id) if made else {}
    of_state = newest.get("userId")
    owner = Scope(DEFAULT_TENANT, user or (of_state if isinstance(of_state, str) and of_state else DEFAULT_USER))
    redacted = partial(redact, owner)
    thread, latest = Thread(owner, id_), _kept(newest, redacted)
    hits = _cache_hits(made)
    asked = first or next((one["query"] for one in latest["queries"]), None)
    values = {
        "id": id_,
        "key": thread.key,
        "tenant": owner.tenant.encode(),
        "user": owner.user.encode(),
        "thread": escaped(id_),
        "first": asked and escaped(redacted(_question_of(asked))[:_LONGEST_QUERY]),
        "queries": len(latest["queries"]),
        "contexts": len(latest["retrievedContexts"]),
        "hits": max(hits, default=0),
    }
    connection.execute(text(_MOVE_THREAD), values)
    names = _names([one.id for one in made])
    for number, one in enumerate(made):
        _move_checkpoint(
            connection, values | {"hits": hits[number], **_was_read(*read)}, one, (number, names), redacted
        )
    for document in documents_of([one["documentId"] for one in latest["retrievedContexts"]]):
        connection.execute(text(_NOTE_DOCUMENT), {"key": thread.key, "document": document})
    for name in (_CHECKPOINTS, _METADATA):
        connection.execute(text(f"DELETE FROM {name} WHERE thread_id = :id"), {"id": id_})  # noqa: S608


def _move_checkpoint(
    connection: Connection,
    thread: Mapping[str, Any],
    made: _Made,
    place: tuple[int, Mapping[str, str]],
    redacted: Callable[[str], str],
) -> None:
    query = text(
        f"SELECT checkpoint_ns, parent_checkpoint_id, metadata_blob FROM {_CHECKPOINTS}"  # noqa: S608
        " WHERE thread_id = :id AND checkpoint_id = :old"
    )
    at = {"id": thread["id"], "old": made.id}
    ns, parent, metadata = connection.execute(query, at).one()
    number, names = place
    step = _object(metadata).get("step")
    kept = _kept(_state(connection, thread["id"], made.id), redacted)
    channels = {"counts": _counts(kept, thread["hits"])} | {name: thread[name] for name in _READ if name in thread}
    values = {
        **thread,
        **at,
        "new": escaped(names[made.id]).encode(),
        "ns": ns_key(ns or ""),
        "ns_name": escaped(ns or ""),
        "parent": escaped(names[parent]).encode() if parent in names else None,
        "body": taken_over_body(names[made.id], made.ts, kept | channels),
        "metadata": taken_over_metadata(step if isinstance(step, int) else number),
    }
    connection.execute(text(_MOVE_CHECKPOINT), values)


_READ = ("datasourceIds", "accessLevel")


def _was_read(datasources: Any, level: Any) -> dict[str, Any]:
    """What the conversation has read, as channels: its next turn adds to them, and a mixed one stays mixed."""
    found = _listed(datasources)
    return (
        {"datasourceIds": [one for one in found if isinstance(one, str)], "accessLevel": level or "public"}
        if found
        else {}
    )


def _listed(stored: Any) -> list[Any]:
    try:
        found = json.loads(stored) if isinstance(stored, str | bytes) else stored
    except ValueError:
        return []
    return cast("list[Any]", found) if isinstance(found, list) else []


def _made(connection: Connection, id_: str) -> Iterator[_Made]:
    query = text(f"SELECT checkpoint_id, created_at FROM {_CHECKPOINTS} WHERE thread_id = :id")  # noqa: S608
    for checkpoint, created in connection.execute(query, {"id": id_}).all():
        whole = _blob(connection, id_, str(checkpoint))
        values = _values(whole)
        queries, cached = values.get("queries"), values.get("cached") is True
        asked = len(cast("list[Any]", queries)) if isinstance(queries, list) else 0
        yield _Made(str(created or ""), str(whole.get("ts") or ""), asked, str(checkpoint), cached)


def _cache_hits(made: list[_Made]) -> list[int]:
    """Of queries up to each checkpoint. The first one that lists a query has its `cached`: that flag is set a step or
    more before the query is listed, and stays as it is in the steps after it."""
    hits, asked, found = 0, 0, list[int]()
    for one in made:
        hits += one.cached and one.queries > asked
        asked = max(asked, one.queries)
        found.append(hits)
    return found


def _counts(kept: Mapping[str, list[dict[str, Any]]], hits: int) -> dict[str, int]:
    """As a retrieval conversation of ours counts on from."""
    contexts = kept["retrievedContexts"]
    documents = {one["documentId"] for one in contexts}
    return {
        "queryCount": len(kept["queries"]),
        "contextCount": len(contexts),
        "cacheHits": hits,
        "documents": len(documents),
    }


def _names(ids: list[str]) -> dict[str, str]:
    """Ids by which the newest checkpoint is the latest and one of a graph's next run comes after all of them, and which
    LangGraph can read: as its own library makes them, or others in that form, with the earliest of times."""
    if all(map(_BY_TIME.fullmatch, ids)):
        return {id_: id_ for id_ in ids}
    return {id_: f"{number:08x}-0000-6000-8000-{_digest(id_)}" for number, id_ in enumerate(ids)}


def _digest(id_: str) -> str:
    return hashlib.blake2b(id_.encode(), digest_size=6).hexdigest()


def _blob(connection: Connection, id_: str, checkpoint: str) -> dict[str, Any]:
    query = text(f"SELECT checkpoint_blob FROM {_CHECKPOINTS} WHERE thread_id = :id AND checkpoint_id = :old")  # noqa: S608
    return _object(connection.execute(query, {"id": id_, "old": checkpoint}).scalar_one())


def _state(connection: Connection, id_: str, checkpoint: str) -> dict[str, Any]:
    return _values(_blob(connection, id_, checkpoint))


def _values(blob: dict[str, Any]) -> dict[str, Any]:
    """The state's channels: of a checkpoint, or of the bare state that the design shows."""
    values = blob.get("channel_values", blob)
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def _object(stored: Any) -> dict[str, Any]:
    try:
        found = json.loads(stored or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _kept(values: Mapping[str, Any], redacted: Callable[[str], str]) -> dict[str, list[dict[str, Any]]]:
    """`queryIndex` of a query is its index in the list, as contexts refer to it."""
    queries = [
        {
            "query": redacted(_question_of(one["query"])),
            "timestamp": str(one.get("timestamp") or ""),
            "topK": one["topK"] if isinstance(one.get("topK"), int) else _TOP_K,
            "queryIndex": number,
        }
        for number, one in enumerate(_entries(values.get("queries")))
        if isinstance(one.get("query"), str)
    ]
    contexts = [
        {
            "parentChunkId": str(one.get("parentChunkId") or ""),
            "documentId": str(one["documentId"]),
            "content": str(one.get("content") or ""),
            "score": one["score"] if isinstance(one.get("score"), int | float) else 0.0,
            "timestamp": str(one.get("timestamp") or ""),
            "queryIndex": one["queryIndex"] if isinstance(one.get("queryIndex"), int) else 0,
        }
        for one in _entries(values.get("retrievedContexts"))
        if one.get("documentId")
    ]
    return {"queries": queries, "retrievedContexts": contexts}


def _entries(value: Any) -> list[dict[str, Any]]:
    found = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) if isinstance(one, dict) else {} for one in found]


def _question_of(query: str) -> str:
    """Of a follow-up their graph kept all that it was searched with; the question itself stands at its end."""
    return query.rpartition(_ASKED)[2].strip() if query.startswith(_ENRICHED) else query
