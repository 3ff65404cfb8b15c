"""The archive behind a hot store: an append is answered when the journal has it, and a worker brings it here later.

Every verb works while one of the two is away. Message ids are fixed before the first attempt, so an append whose
outcome is unknown can be tried on the other store: should both have it, the archive knows the second for a duplicate.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeVar

from threadkeep.archive.owed import ArchiveAway, Owed
from threadkeep.archive.seam import joined, window_of
from threadkeep.errors import (
    Conflict,
    NotFound,
    OutcomeUnknown,
    ScopeErased,
    StoreError,
    StoreUnavailable,
    ThreadkeepError,
)
from threadkeep.model import (
    Admission,
    ConversationChange,
    ConversationPage,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Message,
    Receipt,
    Stats,
)
from threadkeep.ports.hot import Hot, HotStore, Seed
from threadkeep.ports.placing import ArchiveWithPlacing
from threadkeep.record import ConversationRecord
from threadkeep.resilience.breaker import Breaker
from threadkeep.resilience.one_call import one_call
from threadkeep.scope import Scope

Durability = Literal["fast", "durable"]
T = TypeVar("T")

# More than a conversation can have in the journal when its hot store goes away.
GAP = 100_000
_MOST_QUEUED = 200  # of those that left the window, where somebody wants to search them
NOT_REACHED = Erased(found=1, failed=1)
_log = logging.getLogger("threadkeep.stores")


class WriteBehind:
    """`fast`: the journal's word is enough (`queued`). `durable`: the archive has it first (`stored`)."""

    def __init__(
        self,
        hot: HotStore,
        archive: ArchiveWithPlacing,
        window: HistoryRange,
        durability: Durability,
        breaker: Breaker,
    ) -> None:
        self._hot = hot
        self._window = window
        self._archive = archive
        self._durability = durability
        self._breaker = breaker
        self._owed = Owed(hot, archive, window, self.seed_of if durability == "fast" else None)

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        if self._durability == "durable":
            return await self._append_durably(scope, admission, key)
        asked = self._breaker.allows()
        receipt = await self._answered(lambda: self._append_hot(scope, admission, key)) if asked else None
        if receipt is not None:
            return receipt
        try:
            return await self._append_past_the_journal(scope, admission, key)
        except StoreUnavailable as error:
            if not asked or isinstance(error, OutcomeUnknown):
                raise
            raise OutcomeUnknown(
                "the hot store broke off and the archive does not answer: the journal may or may not have it."
                " Repeat it with the same idempotency key"
            ) from error

    async def _append_hot(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        await self._owed.tell(scope)
        return await self._hot.append(scope, admission, key)

    async def _append_durably(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        """A replay is shown too: whoever made the first attempt may have died before it could."""
        receipt = await self._archive.append(scope, admission, key)
        if receipt.kept and not await self._shown(scope, receipt):
            self._owed.note(scope)
        return receipt

    async def _shown(self, scope: Scope, receipt: Receipt) -> bool:
        """Whether the window has followed. That it could not is no reason to refuse what is stored."""
        try:
            return await self._asked_hot(lambda: self._refresh(scope, receipt)) is not None
        except (Conflict, ScopeErased, ArchiveAway) as error:
            _log.warning("a window did not follow the archive (%s)", type(error).__name__)
            return False

    async def _refresh(self, scope: Scope, receipt: Receipt) -> bool:
        """Under the generation the messages were read at: an erase in between is noticed."""
        await self._owed.tell(scope)
        try:
            new = await self._archive.messages(scope, HistoryRange(limit=len(receipt.kept), before=receipt.seq + 1))
        except StoreError as error:
            raise ArchiveAway(str(error)) from error
        await self._hot.refresh(new.scope, new.messages)
        return True

    async def _append_past_the_journal(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        """What the journal still holds of this conversation keeps its place: the archive goes on past a gap.

        A new gap, unless the last number is still the one given here: else the hot store was back in between, for
        this process or another, and the journal may hold numbers just above.
        """
        async with self._owed.ordering(scope):
            given = self._owed.last_seq(scope)
            if given is None or given != await self._archive.last_seq(scope):
                await self._archive.leave_gap(scope, GAP)
            self._owed.note(scope)
            receipt = await self._archive.append(scope, admission, key)
            self._owed.note(scope, receipt.seq)
            return receipt

    async def seed_of(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        """What the archive knows: the hot store asks for it when it cannot vouch for its own word."""
        try:
            return await self._archive.seed(scope, ids, key)
        except StoreError as error:
            raise ArchiveAway(str(error)) from error

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        away: list[ArchiveAway] = []
        hot = await self._asked_hot(lambda: self._read_hot(scope, wanted, away))
        if away and hot is None:
            raise away[0]
        if hot is not None and (away or self._answers(hot, wanted)):
            return window_of(hot, wanted)
        try:
            kept = await self._archive.messages(scope, wanted)
        except StoreError:  # away, or refusing us: the window is an answer all the same
            if hot is None:
                raise
            return window_of(hot, wanted)
        return kept if hot is None else joined(kept, hot, wanted)

    async def queued(self, scope: Scope) -> Sequence[Message]:
        """What is hot of a conversation, newest last: all that the archive does not hold yet is among it."""
        hot = await self._asked_hot(lambda: self._read_queued(scope))
        return () if hot is None else (*hot.pending, *hot.window)

    async def _read_queued(self, scope: Scope) -> Hot | None:
        """Erasures that the hot store has not heard of come first, as in every read."""
        with suppress(ArchiveAway):
            await self._owed.tell(scope)
        return await self._hot.read(scope, pending=_MOST_QUEUED)

    async def _read_hot(self, scope: Scope, wanted: HistoryRange, away: list[ArchiveAway]) -> Hot | None:
        """Notes in `away` that the archive did not answer, so that nobody waits for it a second time."""
        try:
            await self._owed.tell(scope)
        except ArchiveAway as error:
            away.append(error)
        if wanted.before is None:
            hot = await self._hot.read(scope, pending=0)
            if hot is not None and not self._answers(hot, wanted):  # seldom, and dearer
                hot = await self._hot.read(scope, pending=wanted.limit)
        else:
            hot = await self._hot.read(scope)
        return hot

    def _answers(self, hot: Hot, wanted: HistoryRange) -> bool:
        """Whether the window holds all that is wanted."""
        if not hot.whole or wanted.before is not None:
            return False
        if wanted == self._window:
            return True
        enough = wanted.limit is not None and len(hot.window) >= wanted.limit
        from_the_beginning = bool(hot.window) and hot.window[0].seq == 1
        return (enough or from_the_beginning) and wanted.max_chars is None

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._archive.conversations(scope, after, limit)

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        """A conversation of which all is still in the journal is made now, so that it can be changed.

        Closing covers what is on its way there, too.
        """
        hot: Hot | None = None
        if change.status == "closed":
            hot = await self._asked_hot(lambda: self._hot.read(scope, pending=1))
            change = replace(change, up_to=hot.last_seq) if hot else change
        try:
            await self._archive.change(scope, change)
        except NotFound:
            hot = hot or await self._asked_hot(lambda: self._hot.read(scope, pending=1))
            if hot is None or hot.last_seq == 0:
                raise
            await self._archive.leave_gap(hot.scope, 0)
            await self._archive.change(scope, change)

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """The archive's new generation is what keeps the journal's entries out from then on.

        Entries whose generation nobody could tell are taken from the journal before it is raised. In one conversation
        the hot store is asked twice and waited for once; a user may have any number of them.
        """
        with one_call(shared=scope.conversation is not None):
            return await self._erase(scope, message_id)

    async def _erase(self, scope: Scope, message_id: str | None) -> ErasureProof:
        before = await self._asked_hot(lambda: self._hot.erase(scope, message_id, 0))
        proof = await self._archive.erase(scope, message_id)
        after = None  # one that did not answer just now is not waited for again: it is told once it is back
        if before is not None:
            after = await self._asked_hot(lambda: self._hot.erase(scope, message_id, proof.generation))
        if after is None:
            self._owed.note_erasure(scope, message_id, proof.generation)
        if before is None or after is None:
            return replace(proof, stores={**proof.stores, **(after or before or {}), "hot": NOT_REACHED})
        return replace(proof, stores={**proof.stores, **{name: _both(before[name], after[name]) for name in after}})

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._archive.stats(scope)

    async def takes_writes(self) -> bool:
        return await self._archive.takes_writes()

    def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        return self._archive.records(scope)

    async def close(self) -> None:
        await self._owed.close()
        with suppress(StoreError):  # a line that is dead already
            await self._hot.close()
        await self._archive.close()

    async def _asked_hot(self, question: Callable[[], Awaitable[T]]) -> T | None:
        """The hot store's answer; None while it is away, or cannot do its part."""
        return await self._answered(question) if self._breaker.allows() else None

    async def _answered(self, question: Callable[[], Awaitable[T]]) -> T | None:
        try:
            answer = await question()
        except ArchiveAway:
            raise  # says nothing of the hot store
        except StoreError as error:
            self._breaker.failed(error)
            return None
        except ThreadkeepError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        self._owed.tell_all_soon()
        return answer


def _both(one: Erased, other: Erased) -> Erased:
    return Erased(one.found + other.found, one.removed + other.removed, one.failed + other.failed)
