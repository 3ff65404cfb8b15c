"""Settings and URLs to a working Memory, and to what adapters open: the one module that knows every backend by name."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from threadkeep.archive.database import DatabaseArchive, SqliteArchive
from threadkeep.checkpoints.items import SqlItems
from threadkeep.checkpoints.kept import KeptThreads
from threadkeep.checkpoints.store import DatabaseCheckpoints
from threadkeep.compose.optional import part
from threadkeep.compose.vectors import chosen_embedder, count_tokens, with_vectors
from threadkeep.core.language import ConversationLanguage, TenantLanguages
from threadkeep.db.database import Database
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.errors import InvalidSetting, MissingExtra, StoreError
from threadkeep.identity.api_keys import SqlKeys
from threadkeep.index.external import ListingIndex, external_stores
from threadkeep.index.terms import DatabaseUpkeep, SqliteTerms
from threadkeep.knowledge.erasing import ErasedDocuments
from threadkeep.memory import Memory, Stores
from threadkeep.metrics.measured import (
    CHECKPOINT_BYTES,
    CHECKPOINT_LIST,
    CHECKPOINT_LOAD,
    CHECKPOINT_SAVE,
    MeasuredMemory,
    timed,
)
from threadkeep.models.language import OfflineDetector
from threadkeep.policy.admit import Rules
from threadkeep.policy.logs import OutwardLog
from threadkeep.policy.redact import (
    KeyedNumbers,
    RedactionRules,
    load_rules,
    shared_redactor,
    shortest_key,
)
from threadkeep.ports.agent_rows import WITH_TURNS, AgentRows
from threadkeep.ports.checkpoints import (
    CheckpointStore,
    NewCheckpoint,
    Search,
    StoredCheckpoint,
    Wanting,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import Meter
from threadkeep.ports.index import TermIndex, VectorStores
from threadkeep.ports.knowledge import KnowledgeVectors
from threadkeep.ports.models import Embedder, LanguageDetector, LanguageRules, Rerank
from threadkeep.ports.redactor import Redactor as RedactorPort
from threadkeep.ports.sessions import Fronted, SessionLimits
from threadkeep.ports.threads import Thread
from threadkeep.recall.normalise import NORMALISER_VERSION, every_term, indexed_terms
from threadkeep.rows.agent_sessions import KeptRows, SqlAgentRows
from threadkeep.rows.reflections import SqlReflections
from threadkeep.rows.usage import SqlLedger
from threadkeep.scope import Scope, length_prefixed
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.sessions.scratch import InMemoryScratch, InMemorySlots
from threadkeep.settings import Settings, load_settings
from threadkeep.wording import ErasedTexts

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_SERVER_SCHEMES = ("postgresql", "postgres", "mysql", "mariadb")
OUTWARD_LOGGER = "threadkeep.outward"


@asynccontextmanager
async def open_memory(
    url: str | None = None,
    *,
    redis: str | None = None,
    worker: bool = True,
    attach: bool = True,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    detector: LanguageDetector | None = None,
    engine: AsyncEngine | None = None,
    embedder: Embedder | None = None,
    rerank: Rerank | None = None,
) -> AsyncGenerator[Memory]:
    """A Memory on the archive at `url` (`sqlite:///path.db`, `postgresql://…`, `mysql://…`), or at `DATABASE_URL`.

    `redis` (otherwise `REDIS_URL`; "" for none) puts a hot store and a journal in front of it, and attaches them to an
    archive that has none, unless `attach=False`; `worker=False` leaves flushing to `threadkeep worker`.
    `engine` is an application's own, instead of a URL, and `embedder` instead of the one that `THREADKEEP_EMBEDDER`
    names; both are left open. `detector` detects the language of a conversation; `rerank` reorders what was recalled.

    Raises `InvalidSetting`, `CapabilityMissing` and the `StoreError` that says why it would not open. With a Redis,
    either of the two may be down: the process starts, and continues with the other. Where the archive has another Redis
    or another mode than this process, reading works, and writing raises `HotStoreMismatch`.
    """
    settings = settings or load_settings()
    rules, meter = admission_rules(settings), meter_for(settings)
    where, hot = engine or url or settings.database_url, redis_named(redis, settings)
    stores = await _stores(where, hot, settings, rules, clock, worker=worker, attach=attach)
    stores = replace(with_vectors(stores, settings, worker=worker, embedder=embedder), rerank=rerank)
    languages = ConversationLanguage(detector or OfflineDetector(), tenant_languages(settings))
    parts = stores, rules, session_limits(settings), clock, _outward_log(settings), languages, count_tokens(settings)
    memory = Memory(*parts) if meter is None else MeasuredMemory(meter, *parts)
    try:
        yield memory
    finally:
        await memory.close()


@asynccontextmanager
async def memory_to_look_at(archive: str, redis: str | None, settings: Settings) -> AsyncGenerator[Memory]:
    """A Memory of these stores to ask what is in them and how they are. Attaches and flushes nothing.

    A Redis that refuses this process is as unavailable as one that is down, so its `health` reports both.
    """
    rules = admission_rules(settings)
    stores = await _stores(archive, redis, settings, rules, system_clock, worker=False, attach=False)
    memory = Memory(stores, rules, session_limits(settings))
    try:
        yield memory
    finally:
        await memory.close()


def redis_named(redis: str | None, settings: Settings) -> str | None:
    """The one rule of which Redis a process uses: the one it was given, otherwise `REDIS_URL`; "" means none."""
    return (settings.redis_url if redis is None else redis) or None


async def _stores(
    archive: str | AsyncEngine,
    redis: str | None,
    settings: Settings,
    rules: Rules,
    clock: Clock,
    *,
    worker: bool,
    attach: bool,
) -> Stores:
    if not redis:
        return await stores_at(archive, settings, clock)
    parts = redis_parts()
    client = await parts.redis_at(redis, settings)
    try:
        stores = await stores_at(archive, settings, clock, may_be_down=True)
    except BaseException:
        await client.close()
        raise
    behind = parts.behind_redis(client, stores, settings, clock, worker=worker, keep=rules.kept_text, attach=attach)
    if client.is_linked and cast("Fronted", stores.archive).is_ready:
        with suppress(StoreError):  # logged; and compared again by the first call that needs it
            await behind.may_write()
    return behind


async def stores_at(
    where: str | AsyncEngine, settings: Settings, clock: Clock = system_clock, *, may_be_down: bool = False
) -> Stores:
    """Open and up to date; a server that `may_be_down` is so once it answers."""
    if not isinstance(where, str) or is_server_url(where):
        return await sql_parts(where).sql_stores(where, settings, clock, may_be_down=may_be_down)
    database = SqliteDatabase(sqlite_path(where))
    await database.open()
    try:
        await DatabaseUpkeep(database, every_term).claim(NORMALISER_VERSION)
    except BaseException:
        await database.close()
        raise
    limits, erased = session_limits(settings), ErasedTexts.with_key(settings.tombstone_key)
    return replace(
        stores_on(
            database,
            SqliteArchive(database, every_term, limits, clock, erased),
            SqliteTerms(database, every_term),
            settings,
            clock,
        ),
        agent_rows=SqlAgentRows(database, clock, timedelta(days=settings.turn_retention_days)),
        vectors=partial(_sqlite_vectors, database, clock),
        make_room=database.make_room,
    )


def stores_on(
    database: Database, archive: DatabaseArchive, index: TermIndex, settings: Settings, clock: Clock
) -> Stores:
    """What every database holds beside its archive."""
    checkpoints, items = DatabaseCheckpoints(database, clock), SqlItems(database, clock)
    turns = timedelta(days=settings.turn_retention_days)
    return Stores(
        archive=archive,
        may_write=archive.may_write,
        sessions=DatabaseSessions(database, session_limits(settings), clock),
        scratch=InMemoryScratch(clock),
        slots=InMemorySlots(clock),
        reflections=SqlReflections(database),
        ledger=SqlLedger(database),
        index=index,
        upkeep=DatabaseUpkeep(database, every_term),
        checkpoints=checkpoints,
        usage=checkpoints.usage,
        keys=SqlKeys(database),
        items=items,
        keepers={
            "checkpoints": KeptThreads(database, checkpoints, lambda: _exporting().thread_as_json),
            "items": KeptRows(database, items, lambda: _exporting().item_as_json, turns, clock),
        },
        knowledge=ErasedDocuments(database),
        document_vectors=partial(_document_vectors, database, clock),
    )


def _exporting() -> Any:
    """What reads LangGraph's values, imported only where there are any to be exported."""
    return part("adapters.langgraph.exporting", "langgraph", "an export of what LangGraph has stored")


async def open_database(url: str, settings: Settings) -> Database:
    """The database at `url`, for what opens one beside a memory: checked and brought up to date.

    Raise the `StoreError` that says why it would not open.
    """
    if is_server_url(url):
        database: Database = await sql_parts(url).open_server(url, settings)
        return database
    embedded = SqliteDatabase(sqlite_path(url))
    await embedded.open()
    return embedded


def _document_vectors(database: Database, clock: Clock) -> KnowledgeVectors:
    """Imported only now: vectors need numpy, which comes with an extra."""
    from threadkeep.knowledge.store import DatabaseKnowledge

    return DatabaseKnowledge(database, indexed_terms, clock)


def _sqlite_vectors(database: SqliteDatabase, clock: Clock, where: ListingIndex | None) -> VectorStores:
    """Imported only now: vectors need numpy, which comes with an extra."""
    from threadkeep.index.backlog import DatabaseBacklog
    from threadkeep.index.vectors import SqliteVectors

    # One writer at a time: a message with a higher number is never seen before one with a lower.
    if where is not None:
        backlog = DatabaseBacklog(database, None, clock)
        return external_stores(where, VectorStores(where, backlog, late_seconds=0, numbers_return=True))
    index = SqliteVectors(database)
    return VectorStores(index, DatabaseBacklog(database, index, clock), late_seconds=0, numbers_return=True)


def sql_parts(where: str | AsyncEngine) -> Any:
    """What speaks to server databases."""
    scheme = _scheme(where) if isinstance(where, str) else ""
    extra = "mysql" if scheme.startswith(("mysql", "mariadb")) else "postgres"
    return part("compose.server", extra, f"{scheme}://" if scheme else "engine=")


def redis_parts() -> Any:
    """What speaks to Redis."""
    return part("compose.redis", "redis", "redis://")


def session_limits(settings: Settings) -> SessionLimits:
    return SessionLimits(
        max_messages=settings.session_max_messages,
        max_chars=settings.session_max_chars,
        ttl_seconds=settings.session_ttl_min * 60,
        carried_over=settings.session_carried_over,
    )


def is_server_url(url: str) -> bool:
    return _scheme(url).partition("+")[0] in _SERVER_SCHEMES


def _scheme(url: str) -> str:
    """Of any URL, also of one whose other parts cannot be read."""
    return url.partition("://")[0].lower()


def tenant_languages(settings: Settings) -> TenantLanguages:
    return TenantLanguages(
        LanguageRules(settings.languages, settings.default_language),
        {tenant: LanguageRules(own.languages, own.default) for tenant, own in settings.tenant_languages.items()},
    )


def sqlite_path(url: str) -> str:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, or `sqlite://` for memory that ends with the process."""
    if not url.startswith("sqlite://"):
        raise InvalidSetting(
            "DATABASE_URL", "is not a database URL", "use sqlite:///path.db, postgresql://… or mysql://…"
        )
    path = url.removeprefix("sqlite://").removeprefix("/")
    return path or ":memory:"


def _outward_log(settings: Settings) -> OutwardLog | None:
    """To a file of its own, or (`-`) to the `threadkeep.outward` logger, which the application routes."""
    if settings.outward_log is None:
        return None
    if settings.outward_log == "-":
        return OutwardLog(logging.getLogger(OUTWARD_LOGGER).info)
    path = Path(settings.outward_log)
    path.parent.mkdir(parents=True, exist_ok=True)
    return OutwardLog(partial(_append_line, path))


def _append_line(path: Path, text: str) -> None:
    """Opened anew each time, so that log rotation and other processes are welcome; for its owner's eyes only."""
    with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text + "\n")


def admission_rules(settings: Settings) -> Rules:
    """Raises `InvalidSetting`, and `MissingExtra` where names are to be recognised and nothing is there to do it."""
    rules = redaction_rules(settings)
    everyone = shared_redactor(rules)
    key = None if settings.redaction_key is None else shortest_key(settings.redaction_key.encode())
    # Of tenants whose phone numbers are of other countries; tenants of the same countries share one.
    own = {
        tenant: shared_redactor(replace(rules, regions=regions)) for tenant, regions in settings.tenant_regions.items()
    }
    if not own and key is None:
        return Rules(everyone, settings.max_message_bytes)

    def redactor_for(scope: Scope) -> RedactorPort:
        redactor = own.get(scope.tenant, everyone)
        if key is None:
            return redactor
        conversation = length_prefixed((scope.tenant, scope.user, scope.conversation or ""))
        return partial(redactor, ordinals=KeyedNumbers(key, conversation))

    return Rules(everyone, settings.max_message_bytes, redactor_for=redactor_for)


def redaction_rules(settings: Settings) -> RedactionRules:
    """Return the built-in rules with those of the operator's file. A setting that is not left at its default wins over
    the file. Raise `InvalidSetting`."""
    rules = RedactionRules()
    if settings.redaction_rules is not None:
        try:
            rules = load_rules(Path(settings.redaction_rules).read_text("utf-8-sig"))
        except (OSError, UnicodeDecodeError):
            problem = ("cannot be read", "name a TOML file that exists, in UTF-8")
            raise InvalidSetting("THREADKEEP_REDACTION_RULES", *problem) from None
    if settings.redaction_style == "plain":
        rules = replace(rules, placeholder="plain")
    if settings.redaction_names != "off":
        rules = replace(rules, names=settings.redaction_names)
    return replace(rules, regions=settings.redaction_regions) if settings.redaction_regions else rules


if TYPE_CHECKING:
    from threadkeep.metrics.prometheus import PrometheusMeter

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def when_served(settings: Settings) -> Settings:
    """A process that can be scraped measures, unless a setting forbids it or the library is missing."""
    if settings.metrics == "auto" and find_spec("prometheus_client") is not None:
        return settings.model_copy(update={"metrics": "on"})
    return settings


def meter_for(settings: Settings) -> Meter | None:
    """None where no scraper would read it. Raises `MissingExtra` and `InvalidSetting`."""
    if settings.metrics == "off" or (settings.metrics == "auto" and settings.prometheus_multiproc_dir is None):
        return None
    return scraped_meter(settings)


def scraped_meter(settings: Settings) -> PrometheusMeter:
    if find_spec("prometheus_client") is None:
        raise MissingExtra("metrics", "THREADKEEP_METRICS=on")
    folder = settings.prometheus_multiproc_dir
    return _meter(None if folder is None else _private(folder))


@cache
def _meter(folder: str | None) -> PrometheusMeter:
    return import_module("threadkeep.metrics.prometheus").PrometheusMeter(folder)


def _private(folder: str) -> str:
    """Made if it is not there. A user who could write to it could forge this service's metrics."""
    path = Path(folder).absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise InvalidSetting(_FOLDER, f"cannot be used ({error.strerror})", "name a folder that can be made") from None
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidSetting(_FOLDER, "can be written to by others", "name a folder of this account's own, mode 0700")
    return str(path)


async def open_checkpoints(url: str, settings: Settings, clock: Clock = system_clock) -> CheckpointStore:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    meter, database = meter_for(settings), await open_database(url, settings)
    if meter is None:
        return DatabaseCheckpoints(database, clock, owned=True)
    return MeasuredCheckpoints(meter, database, clock, owned=True)


class MeasuredCheckpoints(DatabaseCheckpoints):
    """A put that was refused is timed, and adds no bytes."""

    def __init__(self, meter: Meter, database: Database, clock: Clock, *, owned: bool) -> None:
        super().__init__(database, clock, owned=owned)
        self._meter = meter

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        with timed(self._meter, CHECKPOINT_SAVE, None):
            await super().put(thread, checkpoint)
        self._meter.observe(CHECKPOINT_BYTES, checkpoint.size)

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        with timed(self._meter, CHECKPOINT_LOAD, None):
            return await super().get(thread, ns, checkpoint, wanting)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        with timed(self._meter, CHECKPOINT_LIST, None):
            return await super().find(wanted, limit)


async def open_items(url: str, settings: Settings, clock: Clock = system_clock) -> SqlItems:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    return SqlItems(await open_database(url, settings), clock, owned=True)


def embedder_named(name: str, settings: Settings) -> Embedder | None:
    """As `THREADKEEP_EMBEDDER` names them. Raises `InvalidSetting` and `MissingExtra`."""
    return chosen_embedder(settings.model_copy(update={"embedder": name}))


@dataclass(frozen=True, slots=True)
class AgentStores:
    memory: Memory
    rows: AgentRows
    clock: Clock
    keep_seconds: float  # how long rows stay after they were last written


@asynccontextmanager
async def open_agent_stores(
    url: str, settings: Settings, redis: str | None = None, clock: Clock = system_clock
) -> AsyncGenerator[AgentStores]:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    async with open_memory(url, redis=redis, settings=settings, clock=clock) as memory:
        if not is_server_url(url):
            # By the same connection: a commit of another would make it read again whatever pages it had at hand.
            assert memory.agent_rows is not None
            yield AgentStores(memory, memory.agent_rows, clock, WITH_TURNS)
            return
        rows = SqlAgentRows(
            await open_database(url, settings),
            clock,
            timedelta(days=settings.turn_retention_days),
            owned=True,
        )
        try:
            yield AgentStores(memory, rows, clock, WITH_TURNS)
        finally:
            await rows.close()
