"""What a hot store has missed while it was away, told to it before any other word once it is back.

Conversations that the archive ordered meanwhile: the hot counter must not give out their numbers again, and the hot
window must not pass for the newest there is. Erasures: what they forgot must not be shown. A conversation is told
before its own next word; the others are told in the background, so that no single append waits for all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from threadkeep.errors import Conflict, ScopeErased, StoreError, StoreUnavailable
from threadkeep.model import HistoryRange
from threadkeep.ports.archive import Archive
from threadkeep.ports.hot import AskArchive, HotStore
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.core.stores")


class ArchiveAway(StoreUnavailable):
    """It was the archive that did not answer, though the hot store was spoken to."""


@dataclass(frozen=True, slots=True, eq=False)
class _Noted:
    last_seq: int | None


class Owed:
    """`seed_of` is None where the archive always orders: there the hot counter only follows. `tell_missed` makes other
    processes distrust what the hot store held.
    """

    def __init__(
        self,
        hot: HotStore,
        archive: Archive,
        window: HistoryRange,
        seed_of: AskArchive | None,
        tell_missed: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._hot = hot
        self._archive = archive
        self._window = window
        self._seed_of = seed_of
        self._tell_missed = tell_missed
        self._talks: dict[Scope, _Noted] = {}
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._erasures: dict[tuple[Scope, str | None], int] = {}
        self._in_background: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._talks) + len(self._erasures)

    def note(self, scope: Scope, last_seq: int | None = None) -> None:
        """`last_seq` is the conversation's, as this process left it."""
        self._talks[place_of(scope)] = _Noted(last_seq)

    def last_seq(self, scope: Scope) -> int | None:
        noted = self._talks.get(place_of(scope))
        return None if noted is None else noted.last_seq

    def ordering(self, scope: Scope) -> asyncio.Lock:
        """Held by whoever orders this conversation: the archive's numbers and the hot store's never interleave."""
        return self._locks.setdefault(place_of(scope), asyncio.Lock())

    def note_erasure(self, scope: Scope, message_id: str | None, generation: int) -> None:
        self._erasures[place_of(scope), message_id] = generation

    async def tell(self, scope: Scope) -> None:
        """Before a word about this conversation. Raises what the hot store raises, and `ArchiveAway`."""
        for (place, message_id), generation in list(self._erasures.items()):
            await self._hot.erase(place, message_id, generation)
            self._erasures.pop((place, message_id), None)
        place = place_of(scope)
        if place in self._talks:
            async with self.ordering(place):
                await self._tell_if_owed(place)

    def tell_all_soon(self) -> None:
        """The hot store has just answered: a good moment."""
        if len(self) and (self._in_background is None or self._in_background.done()):
            self._in_background = asyncio.create_task(self._tell_all(), name="threadkeep-owed")

    async def close(self) -> None:
        if self._in_background is not None:
            self._in_background.cancel()
            await asyncio.gather(self._in_background, return_exceptions=True)

    async def _tell_all(self) -> None:
        try:
            if self._tell_missed is not None:
                await self._tell_missed()
            for place in list(self._talks):
                await self.tell(place)
        except StoreError as error:
            _log.info("the hot store will be told later what it missed (%s)", type(error).__name__)

    async def _tell_if_owed(self, place: Scope) -> None:
        if (noted := self._talks.get(place)) is not None:
            await self._tell_talk(place)
            if self._talks.get(place) is noted:  # else it was noted again meanwhile
                del self._talks[place]

    async def _tell_talk(self, place: Scope) -> None:
        if self._seed_of is not None:
            await self._hot.seed(place, await self._seed_of(place, (), None))
        try:
            newest = await self._archive.messages(place, self._window)
        except StoreError as error:
            raise ArchiveAway(str(error)) from error
        try:
            await self._hot.refresh(newest.scope, newest.messages)
        except (Conflict, ScopeErased) as error:  # the window keeps what it has; it does not pass for the newest
            _log.warning("a window could not be brought up to date (%s)", type(error).__name__)


def place_of(scope: Scope) -> Scope:
    """Without the generation."""
    return Scope(scope.tenant, scope.user, scope.conversation)
