"""Threads from LangGraph's own savers, read by those savers, stored by ours, and read back to compare.

Ids, parents, metadata, versions and pending writes stay as they are. What was imported before is imported again to the
same effect, so a run that was cut off is simply repeated.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from threadkeep.adapters.langgraph.codec import blocked_types
from threadkeep.adapters.langgraph.saver import ThreadkeepSaver
from threadkeep.errors import CapabilityMissing, InvalidSetting, NotFound, ThreadkeepError

_SAVERS = {
    "sqlite": ("langgraph.checkpoint.sqlite.aio", "AsyncSqliteSaver", "langgraph-checkpoint-sqlite"),
    "postgresql": ("langgraph.checkpoint.postgres.aio", "AsyncPostgresSaver", "langgraph-checkpoint-postgres"),
    "mysql": ("langgraph.checkpoint.mysql.asyncmy", "AsyncMySaver", "langgraph-checkpoint-mysql[asyncmy]"),
}
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints"
_PATHS = "SELECT checkpoint_ns, checkpoint_id, task_id, task_path FROM checkpoint_writes WHERE thread_id = %s"
_PATHS_ON_SQLITE = "SELECT checkpoint_ns, checkpoint_id, task_id, task_path FROM writes WHERE thread_id = ?"
Source = BaseCheckpointSaver[Any]
Paths = Mapping[tuple[str, str, str], str]  # of tasks: by namespace, checkpoint and task


class Different(Exception):
    """What was read back is not what was there; or it may not be read at all."""


@dataclass(slots=True)
class Imported:
    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    problems: dict[str, str] = field(default_factory=dict[str, str])  # by thread id; such a thread is not ours yet

    @property
    def complete(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Owners:
    """One user for all threads, or the one that a thread's metadata names."""

    user: str | None = None
    user_key: str = "user_id"

    def of(self, thread: Sequence[CheckpointTuple]) -> str | None:
        if self.user is not None:
            return self.user
        named = {str(one.metadata[self.user_key]) for one in thread if self.user_key in one.metadata}  # pyright: ignore
        return named.pop() if len(named) == 1 else None


async def import_threads(source: str, target: ThreadkeepSaver, owners: Owners) -> Imported:
    """Every thread of the database at `source`.

    A thread that cannot be read or owned is reported; the others are copied.
    """
    done = Imported()
    async with _opened(source) as saver:
        for thread_id in await _thread_ids(source, saver):
            try:
                thread = await _read(saver, thread_id)
                user = owners.of(thread)
                if user is None:
                    done.problems[thread_id] = "names no user, or several; give one, or the key of metadata that does"
                    continue
                mine = target.for_user(user)
                counts = await _store(mine, thread, await _task_paths(source, saver, thread_id))
                await _compare(mine, thread)
            except (ThreadkeepError, Different) as error:
                done.problems[thread_id] = str(error)
                continue
            except Exception as error:  # whatever a stranger's bytes make a serializer raise; it may quote them
                done.problems[thread_id] = f"cannot be read ({type(error).__name__})"
                continue
            done.threads += 1
            done.checkpoints += counts[0]
            done.writes += counts[1]
    return done


@asynccontextmanager
async def _opened(source: str) -> AsyncGenerator[Source]:
    kind = _kind(source)
    module, name, package = _SAVERS[kind]
    try:
        saver_class: Any = getattr(import_module(module), name)
    except ModuleNotFoundError:
        raise CapabilityMissing(f"to read such threads, install {package}") from None
    where = source
    if kind == "sqlite":
        where = _existing(_sqlite_path(source))
    elif kind == "mysql":
        where = "mysql+asyncmy://" + source.partition("://")[2]
    async with AsyncExitStack() as stack:
        try:
            saver = await stack.enter_async_context(saver_class.from_conn_string(where))
        except Exception as error:  # each driver raises errors of its own, and what they say may hold the password
            raise InvalidSetting("--from", f"cannot be opened ({type(error).__name__})", "check the address") from None
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)  # no code of a stranger's choosing
        yield saver


async def _thread_ids(source: str, saver: Any) -> list[str]:
    """Without opening a single checkpoint. Raises `NotFound` where there is no such table."""
    try:
        return sorted(str(row[0]) for row in await _rows(source, saver, _THREADS))
    except Exception as error:  # the drivers' own
        raise NotFound(f"--from: no threads can be read there ({type(error).__name__})") from None


async def _task_paths(source: str, saver: Any, thread_id: str) -> Paths:
    """Their savers do not return them; a delta channel is its tasks' writes in the order of their paths."""
    query = _PATHS_ON_SQLITE if _kind(source) == "sqlite" else _PATHS
    return {(ns, id_, task): path for ns, id_, task, path in await _rows(source, saver, query, thread_id)}


async def _rows(source: str, saver: Any, query: str, *values: str) -> list[tuple[Any, ...]]:
    if _kind(source) == "sqlite":
        with closing(sqlite3.connect(f"file:{_sqlite_path(source)}?mode=ro", uri=True)) as connection:
            return connection.execute(query, values).fetchall()
    async with saver._cursor() as cursor:
        await cursor.execute(query, values)
        rows: Sequence[Any] = await cursor.fetchall()
    return [tuple(cast("Any", row).values() if isinstance(row, Mapping) else row) for row in rows]


async def _read(saver: Source, thread_id: str) -> list[CheckpointTuple]:
    """Oldest first, so that every parent comes before what was built on it."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    with blocked_types() as blocked:
        found = [one async for one in saver.alist(config)]
    if blocked:
        raise Different(f"holds a {'.'.join(blocked[0])}, which the serializer may not load")
    return sorted(found, key=lambda one: one.checkpoint["id"])


async def _store(saver: ThreadkeepSaver, thread: Sequence[CheckpointTuple], paths: Paths) -> tuple[int, int]:
    writes = 0
    versions: dict[tuple[str, str], Any] = {}
    for one in thread:
        location = one.config["configurable"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        ns, id_ = location.get("checkpoint_ns", ""), one.checkpoint["id"]
        parent = _parent_id(one)
        before = versions.get((ns, parent or ""), {})
        now = versions[ns, id_] = one.checkpoint["channel_versions"]
        new = {channel: version for channel, version in now.items() if before.get(channel) != version}
        config = _config(location["thread_id"], ns, parent)
        stored = await saver.aput(config, one.checkpoint, one.metadata, new)
        pending = [(task, channel, value) for task, channel, value in one.pending_writes or ()]
        for task, group in groupby(pending, key=lambda write: write[0]):
            given = [(channel, value) for _, channel, value in group]
            await saver.aput_writes(stored, given, task, paths.get((ns, id_, task), ""))
            writes += len(given)
    return len(thread), writes


async def _compare(saver: ThreadkeepSaver, thread: Sequence[CheckpointTuple]) -> None:
    """Raises `Different` at the first difference."""
    for one in thread:
        location = one.config["configurable"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        config = _config(location["thread_id"], location.get("checkpoint_ns", ""), one.checkpoint["id"])
        ours = await saver.aget_tuple(config)
        if ours is None or _without_inherited(ours, one) != one.checkpoint:
            raise Different(f"checkpoint {one.checkpoint['id']!r} did not come back as it was")
        kept = {key: value for key, value in one.metadata.items() if key != "writes"}
        if {key: cast("Any", ours.metadata).get(key) for key in kept} != kept or _parent_id(ours) != _parent_id(one):
            raise Different(f"metadata of checkpoint {one.checkpoint['id']!r} did not come back as it was")
        if sorted(map(repr, ours.pending_writes or ())) != sorted(map(repr, one.pending_writes or ())):
            raise Different(f"writes of checkpoint {one.checkpoint['id']!r} did not come back as they were")


def _without_inherited(ours: CheckpointTuple, theirs: CheckpointTuple) -> dict[str, Any]:
    """Without snapshots of delta channels that have not changed since: theirs lie only where they were made."""
    known = theirs.checkpoint["channel_values"]
    values = ours.checkpoint["channel_values"].items()
    kept = {name: value for name, value in values if name in known or not isinstance(value, _DeltaSnapshot)}
    return {**ours.checkpoint, "channel_values": kept}


def _config(thread_id: str, ns: str, checkpoint: str | None) -> RunnableConfig:
    given = {"thread_id": thread_id, "checkpoint_ns": ns}
    return {"configurable": given if checkpoint is None else {**given, "checkpoint_id": checkpoint}}


def _parent_id(one: CheckpointTuple) -> str | None:
    return (one.parent_config or {}).get("configurable", {}).get("checkpoint_id")


def _kind(source: str) -> str:
    scheme = source.partition("://")[0].partition("+")[0].lower()
    kind = {"postgres": "postgresql", "mariadb": "mysql"}.get(scheme, scheme)
    if kind not in _SAVERS:
        raise InvalidSetting("--from", "is no database URL", "use sqlite:///path.db, postgresql://… or mysql://…")
    return kind


def _existing(path: str) -> str:
    if not Path(path).exists():
        raise NotFound(f"{path}: there is no such file")
    return path


def _sqlite_path(source: str) -> str:
    return unquote(urlsplit(source).path.removeprefix("/")) or ":memory:"
