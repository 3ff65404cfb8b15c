"""What keeps a store in order: retention, the schema, search terms, detaching a Redis, and the doctor's findings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from threadkeep.archive.retention import DatabaseTurnRetention
from threadkeep.checkpoints.items import SqlItems
from threadkeep.checkpoints.threads import SqlUsage
from threadkeep.compose.mapped import FIELDS, mapped_config, mapped_tables, named_config, switched_on
from threadkeep.compose.memory import (
    is_server_url,
    open_database,
    redis_named,
    redis_parts,
    sql_parts,
    sqlite_path,
    stores_at,
)
from threadkeep.compose.vectors import uses_chroma, with_vectors
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_schema import NEWEST, version_of
from threadkeep.errors import (
    CapabilityMissing,
    Conflict,
    HotStoreMismatch,
    InvalidSetting,
    NotFound,
    RetentionStopped,
    ThreadkeepError,
)
from threadkeep.ports.archive import ArchiveWithPlacing, RetentionRules
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.index import TermUpkeep
from threadkeep.ports.sessions import Front
from threadkeep.recall.normalise import NORMALISER_VERSION
from threadkeep.rows.reflections import SqlMemoryRetention
from threadkeep.settings import Settings, load_settings
from threadkeep.worker.retention import Forget, Retention, seconds_until

_log = logging.getLogger("threadkeep.retention")


@asynccontextmanager
async def open_retention(
    url: str | None = None, *, redis: str | None = None, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[Retention]:
    """Over the database at `url`, or at `DATABASE_URL`, and the Redis in front of it.

    Raises the `StoreError` that says why one would not open, and `HotStoreMismatch` where they are not each other's.
    """
    settings = settings or load_settings()
    where = url or settings.database_url
    async with _forgetting(where, redis, settings, clock) as told:
        database = await open_database(where, settings)
        turns, memories, rows = DatabaseTurnRetention(database), SqlMemoryRetention(database), SqlItems(database, clock)
        try:
            yield Retention(SqlUsage(database), turns, retention_rules(settings), clock, told, memories, rows)
        finally:
            await database.close()


@asynccontextmanager
async def _forgetting(where: str, redis: str | None, settings: Settings, clock: Clock) -> AsyncGenerator[list[Forget]]:
    """Vectors in the same database are deleted with their message. Those in Chroma are not, nor is the Redis in front,
    which shows a message for as long as its session lives: both are called."""
    hot, told = redis_named(redis, settings), list[Forget]()
    async with AsyncExitStack() as closing:
        if hot or uses_chroma(settings):
            stores = await stores_at(where, settings)
            closing.push_async_callback(stores.archive.close)
            if uses_chroma(settings) and (embedding := with_vectors(stores, settings, worker=False).embedding):
                closing.push_async_callback(embedding.close)
                told.append(lambda turn: embedding.erase(*turn))
            if hot:
                client = await redis_parts().redis_at(hot, settings)
                closing.push_async_callback(client.close)
                release = await redis_parts().releases(client, stores.archive, settings, clock)
                told += [release] if release else []
        yield told


async def retain_daily(
    url: str | None,
    settings: Settings,
    clock: Clock = system_clock,
    also: Callable[[], Awaitable[int]] | None = None,
    redis: str | None = None,
) -> None:
    """Every day at `THREADKEEP_RETENTION_TIME` of the machine's own, for ever; what fails is tried the next day.

    `also` sweeps up what lies elsewhere, and returns how much that was.
    """
    while True:
        await asyncio.sleep(seconds_until(settings.retention_time, clock().astimezone()))
        try:
            async with open_retention(url, redis=redis, settings=settings, clock=clock) as retention:
                done = await retention.run()
            swept = await also() if also else 0
        except RetentionStopped as error:
            _log.error("retention stopped: %s", error)
        except ThreadkeepError as error:
            _log.warning("retention was cut short: %s", type(error).__name__)
        else:
            _log.info("retention: %d expired, %d deleted, %d turns", done.expired, done.deleted, done.turns)
            if done.rows:
                _log.info("retention: %d rows of sessions and items deleted", done.rows)
            if done.memories:
                _log.info("retention: %d memories forgotten", done.memories)
            if swept:
                _log.info("retention: %d abandoned turns ended", swept)


def retention_rules(settings: Settings) -> RetentionRules:
    days = settings.memory_retention_days
    return RetentionRules(
        memories=None if days is None else timedelta(days=days),
        idle=timedelta(days=settings.thread_idle_days),
        grace=timedelta(days=settings.thread_grace_days),
        turns=timedelta(days=settings.turn_retention_days),
    )


@dataclass(frozen=True, slots=True)
class TermsReport:
    found: int | None  # nought or less: from before versions were noted, or being made anew
    newest: int = NORMALISER_VERSION

    @property
    def up_to_date(self) -> bool:
        return self.found in (None, self.newest)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"up_to_date": self.up_to_date}


async def check_terms(url: str, settings: Settings) -> TermsReport:
    """Look, and change nothing."""
    async with _upkeep(url, settings) as upkeep:
        return TermsReport(await upkeep.version())


async def rebuild_terms(url: str, settings: Settings, progress: Callable[[int], None] | None = None) -> int:
    """Make all terms anew that another version made; of how many messages. `progress` receives how many so far."""
    done = 0
    async with _upkeep(url, settings) as upkeep:
        while some := await upkeep.rebuild_some(NORMALISER_VERSION):
            done += some
            if progress is not None:
                progress(done)
    return done


@asynccontextmanager
async def _upkeep(url: str, settings: Settings) -> AsyncGenerator[TermUpkeep]:
    stores = await stores_at(url, settings)
    try:
        if stores.upkeep is None:
            raise CapabilityMissing("this store has no index of terms")
        yield stores.upkeep
    finally:
        await stores.archive.close()


@dataclass(frozen=True, slots=True)
class SchemaReport:
    found: str | None  # None where there were no tables of ours
    newest: str
    up_to_date: bool  # by now


async def check_schema(url: str, settings: Settings) -> SchemaReport:
    """Look, and change nothing. Raises `SchemaTooNew`, and `NotFound` where there is no file."""
    if is_server_url(url):
        return await _on_server(url, settings, check=True)
    path = _existing(url)
    found = version_of(path)
    return SchemaReport(str(found) if found else None, str(NEWEST), found == NEWEST)


async def migrate_schema(url: str, settings: Settings) -> SchemaReport:
    """What it found; the tables are up to date afterwards."""
    if is_server_url(url):
        return await _on_server(url, settings, check=False)
    found = version_of(path := _existing(url))
    database = SqliteDatabase(path)
    await database.open()  # an embedded store is brought up to date whenever it is opened
    await database.close()
    return SchemaReport(str(found) if found else None, str(NEWEST), up_to_date=True)


async def _on_server(url: str, settings: Settings, *, check: bool) -> SchemaReport:
    found, newest = await sql_parts(url).server_schema(url, settings, check=check)
    return SchemaReport(found, newest, not check or found == newest)


def _existing(url: str) -> str:
    path = sqlite_path(url)
    if path == ":memory:" or not Path(path).exists():
        raise NotFound(f"{path}: there is no store here; check --url or DATABASE_URL")
    return path


if TYPE_CHECKING:
    from threadkeep.archive.mapped.check import Misfit
    from threadkeep.sessions.redis.inspect import Finding
    from threadkeep.sessions.redis.store import RedisFront

_LOST = "if that Redis is lost for good, with whatever it had queued, give --lost"


@dataclass(frozen=True, slots=True)
class Detached:
    """`address` and `durability` are what the archive recorded, None where it recorded nothing."""

    address: str | None
    durability: str | None
    archive: bool  # whether the archive had a record
    redis: bool  # whether the Redis had one
    sessions: int  # hot sessions that were evicted: the archive has all of them


async def detach(url: str | None, redis: str | None, settings: Settings, *, lost: bool = False) -> Detached:
    """Free the archive at `url` and the Redis at `redis` from each other; appends are refused while it runs.

    `lost`: the Redis is not contacted, and its queue is given up. Raise `Conflict` while entries or dead letters
    wait, `HotStoreMismatch` where the Redis is not the archive's, `InvalidSetting` where no Redis is named.
    """
    stores = await stores_at(url or settings.database_url, settings)
    archive = cast("ArchiveWithPlacing", stores.archive)
    try:
        front = await archive.front()
        if lost:
            removed = await archive.detach()
            return _detached(front, archive=removed, redis=False, sessions=0)
        where = redis_named(redis, settings)
        if where is None:
            raise InvalidSetting("REDIS_URL", "is not set", f"set it, or give --redis; {_LOST}")
        client = await redis_parts().redis_at(where, settings, must_let_in=True)
        try:
            return await _detach(archive, front, redis_parts().redis_front(client))
        finally:
            await client.close()
    finally:
        await stores.archive.close()


async def _detach(archive: ArchiveWithPlacing, front: Front | None, hot: RedisFront) -> Detached:
    """The Redis refuses appends first, then the archive forgets it, and last it forgets the archive: whatever is cut
    short can be repeated."""
    id = await hot.recorded_id()
    if front is not None and id != front.id:
        raise HotStoreMismatch(
            "REDIS_URL",
            "names another Redis than the one in front of this archive",
            f"set it to the Redis at {front.address}; {_LOST}",
        )
    waiting, dead = await hot.begin_detaching()
    if waiting or dead:
        raise Conflict(
            f"{waiting} entries wait in the journal and {dead} were given up on: nothing was detached;"
            " let `threadkeep worker` flush them, and replay or drop the others with `threadkeep dlq`"
        )
    removed = front is not None and await archive.detach(front.id)
    sessions = await hot.evict_sessions()
    await hot.end_detaching()
    return _detached(front, archive=removed, redis=id is not None, sessions=sessions)


def _detached(front: Front | None, *, archive: bool, redis: bool, sessions: int) -> Detached:
    return Detached(front and front.address, front and front.durability, archive, redis, sessions)


@dataclass(frozen=True, slots=True)
class Obstacle:
    code: str
    severity: Literal["problem"]
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class RedisReport:
    version: str | None  # None while it is unavailable
    cluster: bool | None
    findings: Sequence[Finding]

    @property
    def usable(self) -> bool:
        return not any(one.severity == "problem" for one in self.findings)


@dataclass(frozen=True, slots=True)
class ServerReport:
    product: str
    version: str
    obstacle: Obstacle | None  # to storing a turn
    schema: str | None  # None where there are no tables of ours yet
    newest_schema: str
    pool_size: int
    pool_most: int  # with those it may open beyond


@dataclass(frozen=True, slots=True)
class MappedReport:
    """Tables that belong to the application: which, and what in them does not fit the mapping."""

    enabled: bool
    tables: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str | None]]  # by table: all our fields, with the columns they are kept in
    misfits: Sequence[Misfit]

    @property
    def usable(self) -> bool:
        return not any(one.fatal for one in self.misfits)


def problem_with_chroma(settings: Settings) -> str | None:
    """What keeps vectors from being read and written there. Blocks, and changes nothing."""
    if find_spec("chromadb") is None:
        return "is not installed: pip install 'threadkeep[chroma]'"
    return import_module("threadkeep.index.chroma_client").problem_with_chroma(settings.chroma_path)


async def inspect_redis(url: str, settings: Settings) -> RedisReport:
    """Raises `InvalidSetting` and `MissingExtra`; a Redis that is down is a finding."""
    version, cluster, findings = await redis_parts().inspected(url, settings)
    return RedisReport(version, cluster, findings)


async def inspect_server(url: str, settings: Settings) -> ServerReport | None:
    """None where the archive is on no server. Changes nothing. Raises the `StoreError` that keeps it from looking."""
    if not is_server_url(url):
        return None
    product, version, obstacle, schema, newest = await sql_parts(url).inspected(url, settings)
    most = settings.pool_size + settings.pool_overflow
    told = None if obstacle is None else Obstacle(obstacle.code, "problem", obstacle.message, obstacle.fix)
    return ServerReport(product, version, told, schema, newest, settings.pool_size, most)


def check_mapping(settings: Settings) -> None:
    """Raise `InvalidSetting` for a mapping that is named and cannot be used, unless it is switched off."""
    path = named_config()
    if (path is not None or "memory_table_map" in settings.model_fields_set) and switched_on(path):
        mapped_config(settings, path)


async def inspect_mapped(url: str, path: str | None, settings: Settings) -> MappedReport:
    """`path`: of `config.json`. Raises `InvalidSetting`, or the `StoreError` that kept it from looking."""
    config = mapped_config(settings, path)
    named = {logical: one.shown for logical, one in config.tables.items()}
    columns = {logical: {field: one.columns.get(field) for field in FIELDS} for logical, one in config.tables.items()}
    if not config.enabled:
        return MappedReport(False, named, columns, ())
    tables = mapped_tables(settings.model_copy(update={"database_url": url}), config)
    try:
        return MappedReport(True, named, columns, await tables.check())
    finally:
        await tables.close()
