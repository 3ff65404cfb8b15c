"""What a hot store has missed during an outage, brought to it before it is used again.

Conversations that the archive ordered during the outage: the hot counter must not give out their numbers again, and
the hot window must not pass for the newest. Erasures: what they removed must not be shown. A conversation is caught up
before its own next use; the others in the background, so that no single append waits for all of them.
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
