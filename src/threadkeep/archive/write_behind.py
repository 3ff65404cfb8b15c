"""The archive behind a hot store: an append is answered when the journal has it, and a worker brings it here later.

Every verb works while one of the two is down. Message ids are fixed before the first attempt, so an append whose
outcome is unknown can be tried on the other store: should both have it, the archive knows the second for a duplicate.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from threadkeep.archive.hot_store import ArchiveUnavailable, CatchUp, FrontCheck
from threadkeep.errors import (
    Conflict,
    HotStoreMismatch,
    NotFound,
    OutcomeUnknown,
    ScopeErased,
    StoreError,
    StoreUnavailable,
    ThreadkeepError,
)
from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ConversationRecord,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Message,
    Receipt,
    Stats,
)
from threadkeep.ports.archive import ArchiveWithPlacing, Spot
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import Durability as Durability  # named here for other parts
from threadkeep.ports.sessions import Hot, HotStore, Seed
from threadkeep.resilience.breaker import Breaker
from threadkeep.resilience.one_call import one_call
from threadkeep.scope import Scope

T = TypeVar("T")

# More than a conversation can have in the journal when its hot store goes down.
GAP = 100_000
_MOST_QUEUED = 200  # of those that left the window, where a caller searches them
NOT_REACHED = Erased(found=1, failed=1)
_log = logging.getLogger("threadkeep.core.stores")


class WriteBehind:
    """`fast`: the journal's word is enough (`queued`). `durable`: the archive has it first (`stored`)."""

    def __init__(
        self,
        hot: HotStore,
        archive: ArchiveWithPlacing,
        window: HistoryRange,
        durability: Durability,
        breaker: Breaker,
        front: FrontCheck | None = None,
    ) -> None:
        self._hot = hot
        self._front = front
        self._window = window
        self._archive = archive
        self._durability = durability
        self._breaker = breaker
        seed_of = self.seed_of if durability == "fast" else None
        self._catch_up = CatchUp(hot, archive, window, seed_of, front.send_missed if front else None)

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        if self._front is None:
            return await self._append(scope, admission, key)
        return await self._front.trying(lambda: self._append(scope, admission, key))

    async def _append(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        if self._durability == "durable":
            return await self._append_durably(scope, admission, key)
        allowed = self._breaker.allows()
        receipt = await self._answered(lambda: self._append_hot(scope, admission, key)) if allowed else None
        if receipt is not None:
            return receipt
        try:
            return await self._append_past_the_journal(scope, admission, key)
        except StoreUnavailable as error:
            if not allowed or isinstance(error, OutcomeUnknown):
                raise
            raise OutcomeUnknown(
                "the hot store broke off and the archive does not answer: the journal may or may not have it."
                " Repeat it with the same idempotency key"
            ) from error

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` unless the hot store and the mode of this process are the archive's.

        A hot store that is down refuses nothing: the archive makes its own check.
        """
        if self._front is not None and self._front.is_known:
            await self._front.writer()
        elif self._front is not None:
            await self._from_hot(self._front.writer)

    async def _append_hot(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        if self._front is not None:
            await self._front.writer()
        await self._catch_up.bring(scope)
        return await self._hot.append(scope, admission, key)

    async def _append_durably(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        """A replay is shown too: the process that made the first attempt may have died before it could."""
        await self.may_write()
        receipt = await self._archive.append(scope, admission, key)
        if receipt.kept and not await self._shown(scope, receipt):
            self._catch_up.note(scope)
            with suppress(StoreError):  # the message is stored; this process brings it to the hot store itself
                await self._note_missed()
        return receipt

    async def _shown(self, scope: Scope, receipt: Receipt) -> bool:
        """Whether the window has followed. That it could not is no reason to refuse what is stored."""
        try:
            return await self._from_own_hot(lambda: self._refresh(scope, receipt)) is not None
        except (Conflict, ScopeErased, ArchiveUnavailable) as error:
            _log.warning("a window did not follow the archive (%s)", type(error).__name__)
            return False

    async def _refresh(self, scope: Scope, receipt: Receipt) -> bool:
        """Under the generation the messages were read at: an erase in between is noticed."""
        await self._catch_up.bring(scope)
        try:
            new = await self._archive.messages(scope, HistoryRange(limit=len(receipt.kept), before=receipt.seq + 1))
        except StoreError as error:
            raise ArchiveUnavailable(str(error)) from error
        await self._hot.refresh(new.scope, new.messages)
        return True

    async def _append_past_the_journal(self, scope: Scope, admission: Admission, key: str | None) -> Receipt:
        """What the journal still holds of this conversation keeps its numbers: the archive continues past a gap.

        A new gap, unless the last number is still the one given here: else the hot store was back in between, for
        this process or another, and the journal may hold numbers just above.
        """
        async with self._catch_up.ordering(scope):
            given = self._catch_up.last_seq(scope)
            if given is None or given != await self._archive.last_seq(scope):
                await self._archive.leave_gap(scope, GAP)
            self._catch_up.note(scope)
            await self._note_missed()
            receipt = await self._archive.append(scope, admission, key)
            self._catch_up.note(scope, receipt.seq)
            return receipt

    async def _note_missed(self) -> None:
        if self._front is not None:
            await self._front.note_missed()

    async def seed_of(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        """What the archive knows: the hot store requests it when it cannot vouch for its own record."""
        try:
            return await self._archive.seed(scope, ids, key)
        except StoreError as error:
            raise ArchiveUnavailable(str(error)) from error

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        failed: list[ArchiveUnavailable] = []
        answer = await self._from_own_hot(lambda: _wrapped(self._read_hot(scope, wanted, failed)))
        hot = answer[0] if answer else None
        if failed and hot is None:
            raise failed[0]
        if hot is not None and (failed or self._answers(hot, wanted)):
            return window_of(hot, wanted)
        try:
            kept = await self._archive.messages(scope, wanted)
        except StoreError:  # unavailable, or refusing us: the window is an answer all the same
            if hot is None:
                raise
            return window_of(hot, wanted)
        if hot is not None:
            return joined(kept, hot, wanted)
        return kept if answer or self._durability == "durable" else replace(kept, degraded=True)

    async def catch_up(self, scope: Scope) -> None:
        """Bring to the hot store what it has missed of a conversation. While the archive is down it stays behind."""
        with suppress(ArchiveUnavailable):
            await self._catch_up.bring(scope)

    async def completed(self, scope: Scope, hot: Hot) -> Hot:
        """The window with what another process appended past the journal, which the hot store does not know of."""
        if hot.whole:
            return hot
        try:
            kept = await self._archive.messages(scope, self._window)
        except StoreError:
            return hot
        shown = joined(kept, hot, self._window)
        return replace(hot, scope=shown.scope, window=shown.messages, language=shown.language)

    async def queued(self, scope: Scope) -> Sequence[Message]:
        """What is hot of a conversation, newest last: all that the archive does not hold yet is among it."""
        hot = await self._from_own_hot(lambda: self._read_queued(scope))
        return () if hot is None else (*hot.pending, *hot.window)

    async def _read_queued(self, scope: Scope) -> Hot | None:
        """Erasures that the hot store has not heard of come first, as in every read."""
        await self.catch_up(scope)
        return await self._hot.read(scope, pending=_MOST_QUEUED)

    async def _read_hot(self, scope: Scope, wanted: HistoryRange, failed: list[ArchiveUnavailable]) -> Hot | None:
        """Adds to `failed` that the archive did not answer, so that the caller does not wait for it a second time."""
        try:
            await self._catch_up.bring(scope)
        except ArchiveUnavailable as error:
            failed.append(error)
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
        return enough or from_the_beginning

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._archive.conversations(scope, after, limit)

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        return await self._archive.named(scope, names)

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        """A conversation of which all is still in the journal is made now, so that it can be changed.

        Closing covers what is on its way there, too.
        """
        hot: Hot | None = None
        if change.status == "closed":
            hot = await self._from_own_hot(lambda: self._hot.read(scope, pending=1))
            change = replace(change, up_to=hot.last_seq) if hot else change
        try:
            await self._archive.change(scope, change)
        except NotFound:
            answer = await self._from_own_hot(lambda: _wrapped(self._hot.read(scope, pending=1)))
            if answer is None:
                raise StoreUnavailable("Redis does not answer: the conversation may be known only there") from None
            (hot,) = answer
            if hot is None or hot.last_seq == 0:
                raise
            await self._archive.leave_gap(hot.scope, 0)
            await self._archive.change(scope, change)

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """The archive's new generation is what keeps the journal's entries out from then on.

        Entries whose generation is unknown are taken from the journal before it is raised. In one conversation
        the hot store is called twice and waited for once; a user may have any number of them.
        """
        with one_call(shared=scope.conversation is not None):
            return await self._erase(scope, message_id)

    async def _erase(self, scope: Scope, message_id: str | None) -> ErasureProof:
        await self.may_write()
        if message_id is not None:
            proof = await self._forget(scope, [(scope.require_conversation(), message_id)])
            return replace(proof, message_id=message_id)
        before = await self._from_own_hot(lambda: self._hot.erase(scope, None, 0))
        proof = await self._archive.erase(scope)
        after = None  # one that did not answer just now is not waited for again: it catches up once it is back
        if before is not None:
            after = await self._from_own_hot(lambda: self._hot.erase(scope, None, proof.generation))
        if after is None:
            self._catch_up.note_erasure(scope, None, proof.generation)
            await self._note_missed()
        return _with_hot(proof, before, after)

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        await self.may_write()
        with one_call(shared=scope.conversation is not None):
            return await self._forget(scope, messages, texts, phrases)

    async def _forget(
        self, scope: Scope, spots: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        """Messages that are only queued are read before they go: the archive has no row to take their texts from."""
        scopes = [(scope.with_conversation(name), id_) for name, id_ in spots]
        queued = await self._from_own_hot(lambda: self._texts_of(scopes)) if scopes else ()
        before = await self._erased_hot(scopes) if queued is not None else None
        proof = await self._archive.forget(scope, spots, [*texts, *(queued or ())], phrases)
        after = await self._erased_hot(scopes) if before is not None else None
        if proof.buried and (after is not None or not scopes):
            await self._from_own_hot(lambda: self._buried_hot(scope, proof.buried))
        if after is None:
            for one_scope, id_ in scopes:
                self._catch_up.note_erasure(one_scope, id_, proof.generation)
            if scopes:
                await self._note_missed()
        return _with_hot(proof, before, after) if scopes else proof

    async def _texts_of(self, scopes: Sequence[tuple[Scope, str]]) -> list[str]:
        wanted = set(scopes)
        hot = {one_scope: await self._hot.read(one_scope) for one_scope in dict(scopes)}
        found = [(one_scope, one) for one_scope, its in hot.items() if its for one in (*its.pending, *its.window)]
        return [message.content for one_scope, message in found if (one_scope, message.id) in wanted]

    async def _erased_hot(self, scopes: Sequence[tuple[Scope, str]]) -> Mapping[str, Erased] | None:
        erased: dict[str, Erased] = {}
        for one_scope, id_ in scopes:
            part = await self._from_own_hot(lambda one_scope=one_scope, id_=id_: self._hot.erase(one_scope, id_, 0))
            if part is None:
                return None
            erased = {name: _both(erased.get(name, Erased()), one) for name, one in part.items()}
        return erased

    async def _buried_hot(self, scope: Scope, digests: Sequence[bytes]) -> bool:
        await self._hot.bury(scope, digests)
        return True

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._archive.erased_among(scope, texts)

    async def waiting(self, scope: Scope) -> Sequence[tuple[str, Message]] | None:
        """All that is hot of the user, or of one conversation, with the conversation's name.

        None while the hot store is unavailable. What is queued or parked is among it, whether or not the archive holds
        it too.
        """
        return await self._from_own_hot(lambda: self._waiting(scope))

    async def _waiting(self, scope: Scope) -> list[tuple[str, Message]]:
        name = scope.conversation
        names = await self._hot.conversations(scope) if name is None else [name]
        found: list[tuple[str, Message]] = []
        for one in names:
            if (hot := await self._hot.read(scope.with_conversation(one))) is not None:
                found += [(one, message) for message in (*hot.pending, *hot.window)]
        return found

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._archive.stats(scope)

    async def write_obstacle(self) -> HealthFinding | None:
        return await self._archive.write_obstacle()

    def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        return self._archive.records(scope)

    async def close(self) -> None:
        await self._catch_up.close()
        with suppress(StoreError):  # its connection may be dead already
            await self._hot.close()
        await self._archive.close()

    async def _from_hot(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """The hot store's answer; None while it is down, or cannot do its part."""
        return await self._answered(call) if self._breaker.allows() else None

    async def _from_own_hot(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """None also where the hot store is another archive's: what it holds is not of these conversations."""

        async def ask() -> T:
            if self._front is not None:
                await self._front.hot_store()
            return await call()

        try:
            return await self._from_hot(ask)
        except HotStoreMismatch:
            return None

    async def _answered(self, call: Callable[[], Awaitable[T]]) -> T | None:
        try:
            answer = await call()
        except (ArchiveUnavailable, HotStoreMismatch):
            raise  # says nothing of whether the hot store answers
        except StoreError as error:
            self._breaker.failed(error)
            return None
        except ThreadkeepError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        self._catch_up.bring_all_soon()
        return answer


async def _wrapped(answer: Awaitable[T]) -> tuple[T]:
    """So that "the hot store has none" differs from "the hot store did not answer"."""
    return (await answer,)


def _with_hot(
    proof: ErasureProof, before: Mapping[str, Erased] | None, after: Mapping[str, Erased] | None
) -> ErasureProof:
    if before is None or after is None:
        return replace(proof, stores={**proof.stores, **(after or before or {}), "hot": NOT_REACHED})
    return replace(proof, stores={**proof.stores, **{name: _both(before[name], after[name]) for name in after}})


def _both(one: Erased, other: Erased) -> Erased:
    return Erased(one.found + other.found, one.removed + other.removed, one.failed + other.failed)


def window_of(hot: Hot, wanted: HistoryRange) -> History:
    """What is hot, by itself. `seq` starts at one: where the oldest stands higher, the archive may have older ones."""
    messages = _before((*hot.pending, *hot.window), wanted)
    older = messages[0].seq if messages and messages[0].seq > 1 else None
    found = History(hot.scope, messages, hot.language, older)
    return found if wanted.max_chars is None and len(messages) <= (wanted.limit or 0) else _cut(found, wanted)


def joined(kept: History, hot: Hot, wanted: HistoryRange) -> History:
    """By `seq`, each message once. The archive's word on where a message stands is the last one.

    A message may stand under two numbers when its append got no answer from the hot store and was then made here.
    What is hot of an older generation than the archive's is what an erase has not reached yet: it is not shown.
    """
    if (hot.scope.generation or 0) < (kept.scope.generation or 0):
        return kept
    known = {message.id for message in kept.messages}
    tail = _before((message for message in (*hot.pending, *hot.window) if message.id not in known), wanted)
    messages = tuple(sorted((*kept.messages, *tail), key=lambda message: message.seq))
    return _cut(History(kept.scope, messages, hot.language or kept.language, kept.before), wanted)


def _before(messages: Iterable[Message], wanted: HistoryRange) -> tuple[Message, ...]:
    return tuple(message for message in messages if wanted.before is None or message.seq < wanted.before)


def _cut(found: History, wanted: HistoryRange) -> History:
    """The newest that the range admits; the cursor says whether there are older ones."""
    kept: list[Message] = []
    room = wanted.max_chars
    for message in reversed(found.messages):
        if wanted.limit is not None and len(kept) == wanted.limit:
            break
        if room is not None:
            room -= len(message.content)
            if room < 0 and kept:
                break
        kept.append(message)
    shown = tuple(reversed(kept))
    more = len(shown) < len(found.messages) or found.before is not None
    return History(found.scope, shown, found.language, shown[0].seq if shown and more else None)
