"""The archive behind a hot store: an append is answered when the journal has it, and a worker brings it here later.

Every verb works while one of the two is away. Message ids are fixed before the first attempt, so an append whose
outcome is unknown can be tried on the other store: should both have it, the archive knows the second for a duplicate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Literal, Protocol, TypeVar

from threadkeep.errors import StoreUnavailable
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
from threadkeep.ports.archive import Archive
from threadkeep.ports.hot import Hot, HotStore, Seed
from threadkeep.ports.placing import Placing
from threadkeep.record import ConversationRecord
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

Durability = Literal["fast", "durable"]
T = TypeVar("T")

# More than a conversation can have in the journal when its hot store goes away.
GAP = 100_000
NOT_REACHED = Erased(found=1, failed=1)


class ArchiveWithPlacing(Archive, Placing, Protocol):
    """What the worker's side of the archive needs besides the verbs."""


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
        # Conversations that the archive ordered while the hot store was away: its counter must be told.
        self._ordered_here: set[Scope] = set()

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        if self._durability == "durable":
            return await self._append_durably(scope, admission, key)
        receipt = await self._asked_hot(self._append_hot(scope, admission, key))
        return receipt or await self._append_past_the_journal(scope, admission, key)

    async def _append_hot(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        await self._tell_counters()
        return await self._hot.append(scope, admission, key)

    async def _append_durably(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        receipt = await self._archive.append(scope, admission, key)
        if receipt.kept and not receipt.replayed:
            await self._asked_hot(self._refresh(scope, receipt))
        return receipt

    async def _refresh(self, scope: Scope, receipt: Receipt) -> bool:
        newest = await self._archive.messages(scope, HistoryRange(limit=len(receipt.kept)))
        await self._hot.refresh(scope, newest.messages)
        return True

    async def _append_past_the_journal(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        """What the journal still holds of this conversation keeps its place: the archive goes on past a gap."""
        place = _place(scope)
        if place not in self._ordered_here:
            await self._archive.leave_gap(scope, GAP)
            self._ordered_here.add(place)
        return await self._archive.append(scope, admission, key)

    async def _tell_counters(self) -> None:
        """Before the first word to a hot store that is back: it must not give out numbers that were given here."""
        for place in list(self._ordered_here):
            await self._hot.seed(place, await self.seed_of(place))
            self._ordered_here.discard(place)

    async def seed_of(self, scope: Scope) -> Seed:
        """What the archive knows: the hot store asks for it when it cannot vouch for its own counter."""
        known = await self._archive.messages(scope, HistoryRange(limit=1))
        return Seed(await self._archive.last_seq(scope), known.scope.generation or 0, known.language)

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        hot = await self._asked_hot(self._hot.read(scope))
        if hot is not None and self._answers(hot, wanted):
            return _window_of(hot, wanted)
        try:
            kept = await self._archive.messages(scope, wanted)
        except StoreUnavailable:
            if hot is None:
                raise
            return _window_of(hot, wanted)
        return kept if hot is None else _joined(kept, hot, wanted)

    def _answers(self, hot: Hot, wanted: HistoryRange) -> bool:
        """Whether the window holds all that is wanted."""
        if wanted == self._window:
            return hot.whole
        enough = wanted.limit is not None and len(hot.window) >= wanted.limit
        return enough and wanted.before is None and wanted.max_chars is None

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._archive.conversations(scope, after, limit)

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        await self._archive.change(scope, change)

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """The archive first: its generation is what keeps the journal's entries out from then on."""
        proof = await self._archive.erase(scope, message_id)
        hot = await self._asked_hot(self._hot.erase(scope, message_id, proof.generation))
        return replace(proof, stores={**proof.stores, **(hot or {"hot": NOT_REACHED})})

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._archive.stats(scope)

    def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        return self._archive.records(scope)

    async def close(self) -> None:
        await self._hot.close()
        await self._archive.close()

    async def _asked_hot(self, question: Awaitable[T]) -> T | None:
        """The hot store's answer; None while it is away."""
        if not self._breaker.allows():
            _unasked(question)
            return None
        try:
            answer = await question
        except StoreUnavailable as error:
            self._breaker.failed(error)
            return None
        self._breaker.succeeded()
        return answer


def _unasked(question: Awaitable[object]) -> None:
    close = getattr(question, "close", None)
    if close is not None:
        close()


def _place(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)


def _window_of(hot: Hot, wanted: HistoryRange) -> History:
    """`seq` starts at one: where the oldest that is hot stands higher, the archive may have older ones."""
    messages = (*hot.pending, *hot.window)
    older = messages[0].seq if messages and messages[0].seq > 1 else None
    return _cut(hot.scope, messages, hot.language, wanted, older)


def _joined(kept: History, hot: Hot, wanted: HistoryRange) -> History:
    """The archive and the hot tail as one: by `seq`, each message once."""
    by_seq = {message.seq: message for message in (*hot.pending, *hot.window, *kept.messages)}
    below = wanted.before if wanted.before is not None else max(by_seq, default=0) + 1
    messages = tuple(by_seq[seq] for seq in sorted(by_seq) if seq < below)
    return _cut(kept.scope, messages, hot.language or kept.language, wanted, older=kept.before)


def _cut(
    scope: Scope, messages: tuple[Message, ...], language: str | None, wanted: HistoryRange, older: int | None
) -> History:
    kept: list[Message] = []
    room = wanted.max_chars
    for message in reversed(messages):
        if wanted.limit is not None and len(kept) == wanted.limit:
            break
        if room is not None:
            room -= len(message.content)
            if room < 0 and kept:
                break
        kept.append(message)
    shown = tuple(reversed(kept))
    more = len(shown) < len(messages) or older is not None
    return History(scope, shown, language, shown[0].seq if shown and more else None)
