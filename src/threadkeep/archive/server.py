"""The archive on PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.archive.database import DatabaseArchive, TermsOf
from threadkeep.archive.front import generation_of_unknown
from threadkeep.db.pool import PoolUsage
from threadkeep.db.rights import write_obstacle
from threadkeep.db.server import ServerDatabase
from threadkeep.db.terms import hashed
from threadkeep.errors import StoreError
from threadkeep.model import ErasureProof, History, HistoryRange
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import Seed, SessionLimits
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

_SWEEP_SECONDS = 10.0
_SWEPT = (
    "VACUUM (SKIP_LOCKED) tk_messages, tk_conversations, tk_owners, tk_appends, conversation_metadata,"
    " conversation_checkpoints, tk_checkpoint_items, tk_checkpoint_writes"
)


class ServerArchive(DatabaseArchive):
    def __init__(
        self,
        database: ServerDatabase,
        terms_of: TermsOf,
        limits: SessionLimits | None = None,
        clock: Clock = system_clock,
        erased_texts: ErasedTexts = NO_KEY,
    ) -> None:
        super().__init__(database, terms_of, limits, clock, erased_texts)
        self._server = database

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        generation = await self._generation_of_unknown(scope, ids, key)
        return Seed(0, generation) if generation is not None else await super().seed(scope, ids, key)

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        """A caller who wants the newest one alone mostly wants to know whether there is any."""
        if wanted.limit == 1 and wanted.before is None:
            generation = await self._generation_of_unknown(scope)
            if generation is not None:
                return History(scope.at(generation), (), None)
        return await super().messages(scope, wanted)

    async def _generation_of_unknown(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> int | None:
        dialect = self._database.dialect
        return await self._database.read(lambda: generation_of_unknown(_unstamped(scope), ids, key, dialect))

    async def _cleaned(self, proof: ErasureProof) -> ErasureProof:
        return replace(proof, notes=(*proof.notes, *await self._sweep()))

    async def _sweep(self) -> tuple[str, ...]:
        """Sweep the rows' pages; report, and do not raise, that it could not be done at once."""
        if not self._server.can_vacuum:
            return ()
        try:
            await self._server.alone(_SWEPT, seconds=_SWEEP_SECONDS)
        except StoreError:
            return ("the tables could not be vacuumed now; autovacuum will",)
        return ()

    @property
    def is_ready(self) -> bool:
        return self._server.is_ready

    @property
    def address(self) -> str:
        url = self._server.engine.url
        return f"{url.get_backend_name()}://{url.host or ''}:{url.port or ''}/{url.database or ''}"

    async def write_obstacle(self) -> HealthFinding | None:
        return await self._server.snapshot(write_obstacle)

    def pool_usage(self) -> PoolUsage:
        return self._server.pool_usage()

    def _words(self, scope: Scope, content: str) -> Sequence[int]:
        return hashed(scope, self._terms_of(content).split())


def _unstamped(scope: Scope) -> Scope:
    return replace(scope, generation=None)
