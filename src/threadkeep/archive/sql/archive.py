"""The archive on a server database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.sql.append import append, last_seq, looked_up
from threadkeep.archive.sql.erase import erase, forget
from threadkeep.archive.sql.front import attach, check_writer, detach, front, note_missed
from threadkeep.archive.sql.place import leave_gap, place
from threadkeep.archive.sql.read import (
    change_conversation,
    counts,
    list_conversations,
    named_conversations,
    places_within,
    read_messages,
    read_record,
)
from threadkeep.archive.sql.seed import seed
from threadkeep.archive.sql.unheard import generation_of_unheard
from threadkeep.db.locks import Span
from threadkeep.db.rights import write_obstacle
from threadkeep.db.rows import moment
from threadkeep.db.server import PoolUsage, ServerDatabase, Work
from threadkeep.db.words import hashed
from threadkeep.errors import StoreError
from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ErasureProof,
    History,
    HistoryRange,
    Receipt,
    Stats,
)
from threadkeep.ports.archive import Spot
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.fronts import Claim, Front
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.hot import Seed
from threadkeep.ports.placing import Entry, Placed
from threadkeep.ports.sessions import SessionLimits
from threadkeep.record import ConversationRecord
from threadkeep.resilience.one_call import learn, learned
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

T = TypeVar("T")
TermsOf = Callable[[str], str]  # a text's normalised terms, separated by spaces

_ERASE_SECONDS = 600.0  # a user may have a great many messages
_SWEEP_SECONDS = 10.0
_SWEPT = (
    "VACUUM (SKIP_LOCKED) tk_messages, tk_conversations, tk_owners, tk_appends, conversation_metadata,"
    " conversation_checkpoints, tk_checkpoint_items, tk_checkpoint_writes"
)


class SqlArchive:
    """Sessions share the database: one transaction stores a message, its search words and the session's new TTL."""

    def __init__(
        self,
        database: ServerDatabase,
        terms_of: TermsOf,
        limits: SessionLimits | None = None,
        clock: Clock = system_clock,
        erased_texts: ErasedTexts = NO_KEY,
    ) -> None:
        self._database = database
        self._erased_texts = erased_texts
        self._terms_of = terms_of
        self._session_ttl = int((limits or SessionLimits()).ttl_seconds * 1_000_000)
        self._clock = clock
        self.claim = Claim()

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        scope.require_conversation()
        words = [self._words(scope, draft.content) for draft in admission.drafts]
        span, claim, erased = self._span(), self.claim, self._erased_texts
        return await self._database.transact(
            lambda connection: append(connection, scope, admission, words, key, span, claim, erased)
        )

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        """See `ports.placing`. One transaction for the whole batch."""
        words = [[self._words(entry.scope, message.content) for message in entry.messages] for entry in entries]
        ttl, claim, erased = self._session_ttl, self.claim, self._erased_texts
        return await self._database.transact(lambda connection: place(connection, entries, words, ttl, claim, erased))

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        generation = learned((self, _place(scope))) if not ids and key is None else None
        if generation is None:
            generation = await self._generation_of_unheard(scope, ids, key)
        if generation is not None:
            return Seed(0, generation)
        return await self._database.snapshot(partial(seed, scope=scope, ids=ids, key=key))

    async def _generation_of_unheard(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> int | None:
        postgres = self._database.engine.dialect.name == "postgresql"
        return await self._database.direct(
            partial(generation_of_unheard, scope=_place(scope), ids=ids, key=key, postgres=postgres)
        )

    async def last_seq(self, scope: Scope) -> int:
        return await self._database.snapshot(partial(last_seq, scope=scope))

    async def leave_gap(self, scope: Scope, size: int) -> int:
        scope.require_conversation()
        return await self._database.transact(
            self._as_writer(partial(leave_gap, scope=scope, size=size, span=self._span()))
        )

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        """Whoever wants the newest one alone mostly wants to know whether there is any."""
        if wanted.limit == 1 and wanted.before is None:
            generation = await self._generation_of_unheard(scope)
            if generation is not None:
                learn((self, _place(scope)), generation)  # the first append asks the same a moment later
                return History(scope.at(generation), (), None)
        return await self._database.snapshot(partial(read_messages, scope=scope, wanted=wanted))

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._database.snapshot(partial(list_conversations, scope=scope, after=after, limit=limit))

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        return await self._database.snapshot(partial(named_conversations, scope=scope, names=names)) if names else []

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        await self._database.transact(self._as_writer(partial(change_conversation, scope=scope, change=change)))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        work = self._as_writer(partial(erase, scope=scope, message_id=message_id, erased_texts=self._erased_texts))
        proof = await self._database.transact(work, seconds=_ERASE_SECONDS)
        return replace(proof, notes=(*proof.notes, *await self._sweep()))

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        erased = self._erased_texts
        work = partial(forget, scope=scope, spots=messages, erased_texts=erased, texts=texts, phrases=phrases)
        proof = await self._database.transact(self._as_writer(work), seconds=_ERASE_SECONDS)
        return replace(proof, notes=(*proof.notes, *await self._sweep())) if not phrases else proof

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._database.snapshot(
            lambda connection: looked_up(connection, self._erased_texts.erased(scope, texts))
        )

    async def _sweep(self) -> tuple[str, ...]:
        """The rows are gone by now. That their pages could not be swept at once is told, not raised."""
        if not self._database.can_vacuum:
            return ()
        try:
            await self._database.alone(_SWEPT, seconds=_SWEEP_SECONDS)
        except StoreError:
            return ("the tables could not be vacuumed now; autovacuum will",)
        return ()

    def _as_writer(self, work: Work[T]) -> Work[T]:
        """In the same transaction: a hot store that another process attaches is seen by the next write."""
        claim = self.claim

        async def checked(connection: AsyncConnection) -> T:
            await check_writer(connection, claim)
            return await work(connection)

        return checked

    @property
    def is_ready(self) -> bool:
        return self._database.is_ready

    @property
    def address(self) -> str:
        url = self._database.engine.url
        return f"{url.get_backend_name()}://{url.host or ''}:{url.port or ''}/{url.database or ''}"

    async def front(self) -> Front | None:
        return await self._database.snapshot(front)

    async def attach(self, front: Front) -> Front:
        return await self._database.transact(partial(attach, front_=front))

    async def note_missed(self) -> None:
        await self._database.transact(note_missed)

    async def detach(self, id: str | None = None) -> bool:
        return await self._database.transact(partial(detach, id=id))

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` where an append or erase would."""
        self.claim.check_writer(await self.front())

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._database.snapshot(partial(counts, scope=scope))

    async def write_obstacle(self) -> HealthFinding | None:
        return await self._database.snapshot(write_obstacle)

    async def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        for where in await self._database.snapshot(partial(places_within, scope=scope)):
            record = await self._database.snapshot(partial(read_record, place=where))
            if record is not None:  # erased since we listed it
                yield record

    def pool_usage(self) -> PoolUsage:
        return self._database.pool_usage()

    async def close(self) -> None:
        await self._database.close()

    def _span(self) -> Span:
        return Span(moment(self._clock()), self._session_ttl)

    def _words(self, scope: Scope, content: str) -> list[int]:
        return hashed(scope, self._terms_of(content).split())


def _place(scope: Scope) -> Scope:
    return replace(scope, generation=None)
