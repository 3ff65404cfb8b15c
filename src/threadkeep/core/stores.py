"""All that one memory works on, and whether a turn could be stored there now.

The health check asks every store concurrently, without writing anything. What decides is what an append would meet:
does the archive, or the journal where its word is enough, take a write? A journal that is not drained, dead letters and
a pool without a free connection are reported beside it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from threadkeep.errors import HotStoreMismatch, StoreBusy, StoreError, StoreFull, StoreUnavailable
from threadkeep.model import HistoryRange, Message
from threadkeep.ports.agent_rows import AgentRows, ItemStore
from threadkeep.ports.archive import Archive
from threadkeep.ports.checkpoints import CheckpointThreads
from threadkeep.ports.health import BEHIND_SECONDS, Connections, Health, HealthFinding, StoreState
from threadkeep.ports.index import Embedding, Nearest, TermIndex, TermUpkeep, VectorStores
from threadkeep.ports.journal import Depth, Flushing, Journal
from threadkeep.ports.keys import KeyStore
from threadkeep.ports.knowledge import KnowledgeErasure, KnowledgeVectors
from threadkeep.ports.models import Rerank
from threadkeep.ports.scratch import Claims, Scratch, Slots
from threadkeep.ports.sessions import LatestTurn, Sessions
from threadkeep.ports.threads import ThreadUsage
from threadkeep.ports.user_data import Keeper, Ledger, Reflections
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class Stores:
    archive: Archive
    sessions: Sessions
    scratch: Scratch
    index: TermIndex
    slots: Slots | None = None  # for what tools need later in the conversation
    claims: Claims | None = None  # where several processes share a store for them
    reflections: Reflections | None = None
    ledger: Ledger | None = None  # of chat models
    latest: LatestTurn | None = None  # as others read it
    upkeep: TermUpkeep | None = None  # of that index
    checkpoints: CheckpointThreads | None = None  # of graph runs, where they share the archive's database
    usage: ThreadUsage | None = None  # what is counted of them
    keys: KeyStore | None = None  # of callers
    items: ItemStore | None = None  # of a graph's store, likewise
    # Who else keeps something of users beside messages, by the name it has in a proof of an erasure. In the archive's
    # database: of two that have a conversation, the first says what it is.
    keepers: Mapping[str, Keeper] = field(default_factory=dict[str, Keeper])
    agent_rows: AgentRows | None = None  # of agent frameworks' sessions, where they can share the archive's connection
    knowledge: KnowledgeErasure | None = None  # documents in the archive's database, and answers cached from them
    # Made when first wanted, since they need an extra: in the archive's database, or beside a store of their own.
    vectors: Callable[[Any], VectorStores] | None = None
    document_vectors: Callable[[], KnowledgeVectors] | None = None
    embedding: Embedding | None = None  # where there is an embedder
    marked: Callable[[Scope, int], Awaitable[None]] | None = (
        None  # shows the message of that `seq` anew where it is hot
    )
    nearest: Nearest | None = None
    rerank: Rerank | None = None  # an application's own
    remains: Callable[[], Awaitable[tuple[str, ...]]] | None = None  # what a server keeps of what was erased
    may_write: Callable[[], Awaitable[None]] | None = None  # raises `HotStoreMismatch`
    flushing: Flushing | None = None  # where appends are answered before the archive has them
    queued: Callable[[Scope], Awaitable[Sequence[Message]]] | None = None  # the same: what waits in the journal there
    # The same: all that is hot of a user, each message with its conversation; None while that cannot be read.
    waiting: Callable[[Scope], Awaitable[Sequence[tuple[str, Message]] | None]] | None = None
    health: Callable[[], Awaitable[Health]] | None = None  # where there is more to ask than the archive
    make_room: Callable[[], Awaitable[bool]] | None = None  # for an erase on a full disk, where some was set aside
    connections: Callable[[], Connections] | None = None  # of this process, where the archive is on a server


T = TypeVar("T")
_NOBODY = Scope("threadkeep", "health", "health")
_PATIENCE_SECONDS = 3.0
_RECENT_SECONDS = 60.0
_NO_CONNECTION = HealthFinding(
    "no_free_connection",
    "every connection to the archive is in use",
    "raise THREADKEEP_POOL_SIZE, or look for what keeps transactions open on the server",
)
_BEHIND = HealthFinding(
    "journal_behind",
    f"an entry has waited in the journal for more than {BEHIND_SECONDS:.0f} s",
    "is a worker running, and can it write to the archive?",
)


_log = logging.getLogger("threadkeep.core.stores")


class LastWrite:
    """The outcome of the process's last append. No check can find some causes, such as a server's full disk.

    A failure is logged when it is the first of its kind, and again after a minute: at every append of an outage it
    would bury the rest of the log.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.failure: tuple[StoreError, float] | None = None  # and when; None once an append has passed
        self._logged: dict[str, float] = {}  # when, by the error's code

    def failed(self, error: StoreError) -> None:
        now = self._monotonic()
        self.failure = (error, now)
        if now - self._logged.get(error.code, -math.inf) >= _RECENT_SECONDS:
            self._logged[error.code] = now
            _log.error("an append failed (%s): %s", error.code, error)

    def seen_in(self, health: Health) -> Health:
        """Add that the last append failed. A full store counts for a minute: without traffic no append would show
        that there is room again."""
        if self.failure is None:
            return health
        error, at = self.failure
        full = isinstance(error, StoreFull) and self._monotonic() - at < _RECENT_SECONDS
        message = f"the last append of this process failed ({error.code}), and none has passed since"
        finding = HealthFinding("last_write_failed", message, "see the log of this process for the cause", stops=full)
        return replace(health, findings=(*health.findings, finding))


class HealthCheck:
    """Logs nothing and raises no `StoreError`: that a store is unavailable is the answer.

    `takes_writes` queries whether the journal's server would take a turn: one that can only be read is unavailable.
    `queues` is True where the journal's word is enough for an append.
    `may_write` raises `HotStoreMismatch` where this process's Redis or mode is not the archive's.
    """

    def __init__(
        self,
        archive: Archive,
        journal: Journal | None = None,
        patience: float = _PATIENCE_SECONDS,
        takes_writes: Callable[[], Awaitable[bool]] | None = None,
        connections: Callable[[], Connections] | None = None,
        may_write: Callable[[], Awaitable[None]] | None = None,
        *,
        queues: bool = True,
    ) -> None:
        self._archive = archive
        self._journal = journal
        self._patience = patience
        self._takes_writes = takes_writes
        self._connections = connections
        self._queues = queues
        self._may_write = may_write

    async def __call__(self) -> Health:
        health = await self._stores()
        return replace(health, findings=(*await self._refused(), *health.findings))

    async def _refused(self) -> tuple[HealthFinding, ...]:
        try:
            async with asyncio.timeout(self._patience):
                if self._may_write is not None:
                    await self._may_write()
        except HotStoreMismatch as error:
            fix = f"correct {error.setting} (the log names the Redis), or run `threadkeep detach`"
            return (HealthFinding(error.code, f"{error.setting}: {error.problem}", fix, stops=True),)
        except (StoreError, TimeoutError):
            return ()  # one that is unavailable says so itself
        return ()

    async def _stores(self) -> Health:
        if self._journal is None:
            return await self._with_archive(Health({}))
        writing = self._answer(self._takes_writes()) if self._takes_writes else _no_question()
        lag, health, writes = await asyncio.gather(
            self._answer(self._journal.depth()), self._with_archive(Health({}, queues=self._queues)), writing
        )
        failed = next((one for one in (writes, lag) if isinstance(one, Exception)), None)
        depth = None if isinstance(lag, Exception) else lag
        stores = {"redis": "ok" if failed is None else "away", **health.stores}
        unavailable = () if failed is None else (_of_redis(failed),)
        return replace(health, stores=stores, lag=depth, findings=(*health.findings, *unavailable, *_of_journal(depth)))

    async def _with_archive(self, health: Health) -> Health:
        found = await self._answer(self._obstacle())
        used = self._connections() if self._connections else None
        findings = () if found is None else (found if isinstance(found, HealthFinding) else _of_archive(found),)
        if _state(found) == "away" and used is not None and used.in_use >= used.most > 0:
            findings = (_NO_CONNECTION,)  # a pool that is busy for a moment is no finding: the question passed
        return replace(health, stores={"archive": _state(found)}, findings=findings, connections=used)

    async def _obstacle(self) -> HealthFinding | None:
        found = await self._archive.write_obstacle()
        if found is None:
            await self._archive.messages(_NOBODY, HistoryRange(limit=1))  # from the tables themselves
        return found

    async def _answer(self, question: Awaitable[T]) -> T | StoreError | TimeoutError:
        try:
            async with asyncio.timeout(self._patience):
                return await question
        except (StoreError, TimeoutError) as error:
            return error


def _state(found: HealthFinding | StoreError | TimeoutError | None) -> StoreState:
    """`found` is what would keep a write from being stored, or what kept the archive from answering."""
    if found is None:
        return "ok"
    if isinstance(found, HealthFinding):
        return "full" if found.code == "full" else "read_only"
    return "away"


def _of_archive(error: StoreError | TimeoutError) -> HealthFinding:
    if isinstance(error, StoreBusy):
        return _NO_CONNECTION
    code = error.code if isinstance(error, StoreError) else StoreUnavailable.code
    return _as_finding(
        error, code, "the archive", "look at the server and its log, and DATABASE_URL; see `threadkeep doctor`"
    )


def _of_redis(error: StoreError | TimeoutError) -> HealthFinding:
    code = error.code if isinstance(error, StoreError) else StoreUnavailable.code
    return _as_finding(
        error, f"redis_{code.removeprefix('store_')}", "Redis", "look at the server, its log and REDIS_URL"
    )


def _as_finding(error: StoreError | TimeoutError, code: str, store: str, fix: str) -> HealthFinding:
    """In the error's own words, as far as they may be sent to callers."""
    if isinstance(error, StoreError) and error.problem is not None:
        return HealthFinding(code, error.problem, error.fix or fix)
    problem = "could not be checked" if isinstance(error, StoreError) else "did not answer in time"
    return HealthFinding(code, f"{store} {problem}", fix)


def _of_journal(depth: Depth | None) -> tuple[HealthFinding, ...]:
    if depth is None:
        return ()
    behind = (_BEHIND,) if depth.oldest_seconds > BEHIND_SECONDS else ()
    if not depth.dead:
        return behind
    message = f"{depth.dead} journal entries were given up on"
    return (
        *behind,
        HealthFinding("dead_letters", message, "see `threadkeep dlq list`, mend the cause, and replay them"),
    )


async def _no_question() -> bool:
    return True
