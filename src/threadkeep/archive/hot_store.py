"""Whether a hot store may be used: it is the one in front of its archive, and it has been brought what it missed.

The hot store and the archive hold the same id: the archive beside the mode and the address it was attached at, the hot
store beside a digest of the archive's address. Two stores that agree are compared once. After that the archive compares
the process's claim inside every transaction that writes, and the hot store its id inside every append; only a mismatch
there costs another comparison here.

| archive | hot store | verdict |
|---|---|---|
| no id | no id | a new id is given to both: the first process attaches its hot store (a one-shot command does not) |
| X | X | the same |
| X | no id | wiped, and gets X anew, if it is at the address that was attached; otherwise another, refused |
| no id | X | an archive restored or made anew at the same address gets X; in front of another archive, refused |
| X | Y | refused |

While the hot store is down, the process uses the archive. While the archive is down, the hot store's record of
the archive's address decides.

What a hot store missed during an outage is brought to it before it is used again. Conversations that the archive
ordered: the hot counter must not give out their numbers again, and the hot window must not pass for the newest.
Erasures: what they removed must not be shown. A conversation is caught up before its own next use; the others in the
background, so that no single append waits for all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from threadkeep.archive.append import another_hot_store, check_writer
from threadkeep.errors import Conflict, HotStoreMismatch, ScopeErased, StoreError, StoreUnavailable
from threadkeep.model import HistoryRange
from threadkeep.ports.archive import Archive, Entry, Placed, Placing
from threadkeep.ports.sessions import (
    AskArchive,
    Claim,
    Durability,
    Front,
    Fronted,
    Fronting,
    HotFront,
    HotStore,
    Seed,
)
from threadkeep.scope import Scope

T = TypeVar("T")
_log = logging.getLogger("threadkeep.core.stores")


class FrontCheck:
    """One for each process and archive. `archive.claim` is kept up to date for the archive's own checks."""

    def __init__(self, archive: Fronted, hot: HotFront, durability: Durability, *, attaches: bool = True) -> None:
        self._archive = archive
        self._hot = hot
        self._durability: Durability = durability
        self._attaches = attaches
        self._claim: Claim = archive.claim
        self._claim.durability = durability
        self._digest = hashlib.blake2b(archive.address.encode(), digest_size=16).hexdigest()
        self._front: Front | None = None  # what both stores agreed on
        self._checking = asyncio.Lock()
        self._reported: str | None = None
        self._missed = 0  # of the archive's count, what the hot store knows from here

    @property
    def is_known(self) -> bool:
        """Whether both stores have agreed, so that `hot_store` and `writer` ask neither."""
        return self._front is not None

    async def hot_store(self) -> Front:
        """The hot store, which is this archive's. Raise `HotStoreMismatch` where it is not, `ArchiveUnavailable` if the
        archive does not answer and the hot store cannot vouch for it, and what the hot store raises."""
        if self._front is not None:
            return self._front
        async with self._checking:
            if self._front is None:
                return await self._compared()
            return self._front

    async def writer(self) -> None:
        """Raise `HotStoreMismatch` unless this process may append or erase; what `hot_store` raises besides."""
        front = await self.hot_store()
        try:
            check_writer(self._claim, front)
        except HotStoreMismatch as error:
            self._report(error)
            raise

    async def note_missed(self) -> None:
        """Count, in the archive, that the hot store does not hear of what is stored or erased now.

        Several processes share both stores, and this one may end before the hot store is back: the count stays.
        """
        await self._archive.note_missed()

    async def send_missed(self) -> None:
        """Send the hot store how often the archive was written without it, in whichever process that was.

        It then compares each conversation with the archive before it is used again, as after a restart.
        """
        try:
            front = await self._archive.front()
        except StoreUnavailable:
            return  # later; nothing is stored until then
        if front is not None and self._front is not None and front.id == self._front.id and front.missed > self._missed:
            await self._hot.put(Fronting(front.id, front.durability, self._digest, front.missed))
            self._missed = front.missed

    async def trying(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`; once more where a store no longer agrees and a new comparison finds that it does.

        Several calls may meet a wiped hot store at once: each compares, and the first comparison gives it its id anew.
        """
        try:
            return await work()
        except HotStoreMismatch:
            self._front = None
        await self.hot_store()
        try:
            return await work()
        except HotStoreMismatch as error:
            self._report(error)
            raise

    async def _compared(self) -> Front:
        try:
            front, agreed = await self._compare()
        except HotStoreMismatch as error:
            self._claim.id = None
            self._report(error)
            raise
        self._reported = None
        self._claim.id = front.id or None
        await self._hot.use(front.id)
        if agreed:
            self._front = front
        return front

    async def _compare(self) -> tuple[Front, bool]:
        """What is in front, and whether both stores said so."""
        there = await self._hot.read()
        try:
            front = await self._archive.front()
        except StoreUnavailable as error:
            if there is None or there.archive != self._digest:
                raise ArchiveUnavailable(
                    f"whether this Redis belongs to the archive is unknown now: {error}"
                ) from error
            return Front(there.id, there.durability, self._hot.address), False
        if front is None and there is None and not self._attaches:
            return Front("", self._durability, self._hot.address), False
        if front is None:
            front = await self._attached(there)
        if there is None and front.address != self._hot.address:
            raise another_hot_store(front)
        if there is not None and there.id != front.id:
            raise another_hot_store(front)
        # Into every partition of a cluster that has lost it, and into a Redis that was wiped.
        await self._hot.put(Fronting(front.id, front.durability, self._digest, front.missed))
        self._missed = front.missed
        return front, True

    async def _attached(self, there: Fronting | None) -> Front:
        """The archive knows of no hot store: this process attaches its own. Several may try at once; one does it."""
        if there is None:
            new = Front(secrets.token_hex(16), self._durability, self._hot.address)
        elif there.archive == self._digest:
            new = Front(there.id, there.durability, self._hot.address)
        else:
            raise HotStoreMismatch(
                "REDIS_URL",
                "names a Redis that stands in front of another archive",
                "give each archive a Redis, or a database number, of its own; if that archive is no longer in use,"
                " free the Redis with `threadkeep detach`",
            )
        return await self._archive.attach(new)

    def _report(self, error: HotStoreMismatch) -> None:
        """Once, not at every write; and not in a one-shot command, which shows the error itself."""
        if self._attaches and self._reported != str(error):
            self._reported = str(error)
            _log.error("writes are refused, and only the archive is read: %s", error)


class CheckedPlacing:
    """The worker's side of an archive: nothing is placed from a journal that is another archive's."""

    def __init__(self, archive: Placing, front: FrontCheck) -> None:
        self._archive = archive
        self._front = front

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        await self._front.hot_store()
        return await self._front.trying(lambda: self._archive.place(entries))

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._archive.seed(scope, ids, key)


class ArchiveUnavailable(StoreUnavailable):
    """It was the archive that did not answer, though the hot store was spoken to."""


@dataclass(frozen=True, slots=True, eq=False)
class _Noted:
    last_seq: int | None


class CatchUp:
    """`seed_of` is None where the archive always orders: there the hot counter only follows. `send_missed` makes other
    processes distrust what the hot store held.
    """

    def __init__(
        self,
        hot: HotStore,
        archive: Archive,
        window: HistoryRange,
        seed_of: AskArchive | None,
        send_missed: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._hot = hot
        self._archive = archive
        self._window = window
        self._seed_of = seed_of
        self._send_missed = send_missed
        self._conversations: dict[Scope, _Noted] = {}
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._erasures: dict[tuple[Scope, str | None], int] = {}
        self._in_background: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._conversations) + len(self._erasures)

    def note(self, scope: Scope, last_seq: int | None = None) -> None:
        """`last_seq` is the conversation's, as this process left it."""
        self._conversations[ungenerated(scope)] = _Noted(last_seq)

    def last_seq(self, scope: Scope) -> int | None:
        noted = self._conversations.get(ungenerated(scope))
        return None if noted is None else noted.last_seq

    def ordering(self, scope: Scope) -> asyncio.Lock:
        """Held while this conversation is ordered: the archive's numbers and the hot store's never interleave."""
        return self._locks.setdefault(ungenerated(scope), asyncio.Lock())

    def note_erasure(self, scope: Scope, message_id: str | None, generation: int) -> None:
        self._erasures[ungenerated(scope), message_id] = generation

    async def bring(self, scope: Scope) -> None:
        """Before a call about this conversation. Raise what the hot store raises, and `ArchiveUnavailable`."""
        for (erased, message_id), generation in list(self._erasures.items()):
            await self._hot.erase(erased, message_id, generation)
            self._erasures.pop((erased, message_id), None)
        scope = ungenerated(scope)
        if scope in self._conversations:
            async with self.ordering(scope):
                await self._bring_if_noted(scope)

    def bring_all_soon(self) -> None:
        """The hot store has just answered: a good moment."""
        if len(self) and (self._in_background is None or self._in_background.done()):
            self._in_background = asyncio.create_task(self._bring_all(), name="threadkeep-catch-up")

    async def close(self) -> None:
        if self._in_background is not None:
            self._in_background.cancel()
            await asyncio.gather(self._in_background, return_exceptions=True)

    async def _bring_all(self) -> None:
        try:
            if self._send_missed is not None:
                await self._send_missed()
            for scope in list(self._conversations):
                await self.bring(scope)
        except StoreError as error:
            _log.info("the hot store will catch up later (%s)", type(error).__name__)

    async def _bring_if_noted(self, scope: Scope) -> None:
        if (noted := self._conversations.get(scope)) is not None:
            await self._bring_conversation(scope)
            if self._conversations.get(scope) is noted:  # else it was noted again concurrently
                del self._conversations[scope]

    async def _bring_conversation(self, scope: Scope) -> None:
        if self._seed_of is not None:
            await self._hot.seed(scope, await self._seed_of(scope, (), None))
        try:
            newest = await self._archive.messages(scope, self._window)
        except StoreError as error:
            raise ArchiveUnavailable(str(error)) from error
        try:
            await self._hot.refresh(newest.scope, newest.messages)
        except (Conflict, ScopeErased) as error:  # the window keeps what it has; it does not pass for the newest
            _log.warning("a window could not be brought up to date (%s)", type(error).__name__)


def ungenerated(scope: Scope) -> Scope:
    """Without the generation."""
    return Scope(scope.tenant, scope.user, scope.conversation)
