"""An archive and its sessions behind a guard: while they are away, nobody who has another store to go on with waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Message,
    Receipt,
    Session,
    Stats,
)
from threadkeep.ports.archive import Spot
from threadkeep.ports.fronts import Claim, Front
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.hot import Seed
from threadkeep.ports.placing import ArchiveWithPlacing, Entry, Placed
from threadkeep.ports.sessions import Sessions
from threadkeep.record import ConversationRecord
from threadkeep.resilience.breaker import Breaker
from threadkeep.resilience.guard import Guard, Watching
from threadkeep.scope import Scope

_NOBODY = Scope("threadkeep", "guard", "guard")


def guard_for(archive: ArchiveWithPlacing, watching: Watching | None = None) -> Guard:
    return Guard(Breaker("The archive"), lambda: archive.last_seq(_NOBODY), watching)


class GuardedArchive:
    def __init__(self, archive: ArchiveWithPlacing, guard: Guard) -> None:
        self._archive = archive
        self._guard = guard

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        return await self._guard.ask(lambda: self._archive.append(scope, admission, key))

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        return await self._guard.ask(lambda: self._archive.messages(scope, wanted))

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._guard.ask(lambda: self._archive.conversations(scope, after, limit))

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        return await self._guard.ask(lambda: self._archive.named(scope, names))

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        await self._guard.ask(lambda: self._archive.change(scope, change))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        return await self._guard.ask(lambda: self._archive.erase(scope, message_id))

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        return await self._guard.ask(lambda: self._archive.forget(scope, messages, texts, phrases))

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._guard.ask(lambda: self._archive.erased_among(scope, texts))

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._guard.ask(lambda: self._archive.stats(scope))

    async def write_obstacle(self) -> HealthFinding | None:
        return await self._guard.ask(self._archive.write_obstacle)

    def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        """Unguarded: whoever exports has no other store to go on with, and waits."""
        return self._archive.records(scope)

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        return await self._guard.ask(lambda: self._archive.place(entries))

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._guard.ask(lambda: self._archive.seed(scope, ids, key))

    async def last_seq(self, scope: Scope) -> int:
        return await self._guard.ask(lambda: self._archive.last_seq(scope))

    async def leave_gap(self, scope: Scope, size: int) -> int:
        return await self._guard.ask(lambda: self._archive.leave_gap(scope, size))

    @property
    def claim(self) -> Claim:
        return self._archive.claim

    @property
    def is_ready(self) -> bool:
        return self._archive.is_ready

    @property
    def address(self) -> str:
        return self._archive.address

    async def front(self) -> Front | None:
        return await self._guard.ask(self._archive.front)

    async def attach(self, front: Front) -> Front:
        return await self._guard.ask(lambda: self._archive.attach(front))

    async def note_missed(self) -> None:
        await self._guard.ask(self._archive.note_missed)

    async def detach(self, id: str | None = None) -> bool:
        return await self._guard.ask(lambda: self._archive.detach(id))

    async def close(self) -> None:
        await self._guard.close()
        await self._archive.close()


class GuardedSessions:
    """On the same database as the archive, so behind the same guard."""

    def __init__(self, sessions: Sessions, guard: Guard) -> None:
        self._sessions = sessions
        self._guard = guard

    async def touch(self, scope: Scope) -> Session:
        return await self._guard.ask(lambda: self._sessions.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        return await self._guard.ask(lambda: self._sessions.read(scope))

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        await self._guard.ask(lambda: self._sessions.extend(scope, messages))

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._guard.ask(lambda: self._sessions.set_language(scope, language))

    async def erase(self, scope: Scope) -> Erased:
        return await self._guard.ask(lambda: self._sessions.erase(scope))

    async def close(self) -> None:
        await self._guard.close()
        await self._sessions.close()
