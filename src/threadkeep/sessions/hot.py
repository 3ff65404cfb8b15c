"""Sessions on any hot store, with the archive's own as the fallback while it is unavailable."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from cachetools import LRUCache

from threadkeep.errors import HotStoreMismatch, StoreError, ThreadkeepError
from threadkeep.model import Erased, Session
from threadkeep.ports.sessions import Hot, HotStore, Sessions
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope


class FollowsArchive(Protocol):
    """Brings a hot store up to date with an archive that took messages while the hot store was unavailable."""

    async def catch_up(self, scope: Scope) -> None: ...

    async def completed(self, scope: Scope, hot: Hot) -> Hot: ...


class HotSessions:
    def __init__(self, hot: HotStore, following: FollowsArchive) -> None:
        self._hot = hot
        self._following = following

    async def touch(self, scope: Scope) -> Session:
        await self._following.catch_up(scope)
        return await self._session(scope, await self._hot.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        await self._following.catch_up(scope)
        hot = await self._hot.read(scope, pending=0)
        return None if hot is None or hot.created_at is None else await self._session(scope, hot)

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._hot.set_language(scope, language)

    async def erase(self, scope: Scope) -> Erased:
        return (await self._hot.erase(scope))["sessions"]

    async def close(self) -> None:
        await self._hot.close()

    async def _session(self, scope: Scope, hot: Hot) -> Session:
        assert hot.created_at is not None  # a live session has a beginning
        shown = await self._following.completed(scope, hot)
        return Session(shown.scope, hot.created_at, shown.window, shown.language)


T = TypeVar("T")
_log = logging.getLogger("threadkeep.core.stores")
_MOST_UNSYNCED = 10_000


class FallbackSessions:
    """The language is kept in both, so that an outage of either does not ask for it again."""

    def __init__(
        self,
        hot: Sessions,
        archived: Sessions,
        breaker: Breaker,
        is_ours: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`is_ours` raises `HotStoreMismatch` where the hot store belongs to another archive."""
        self._hot = hot
        self._archived = archived
        self._breaker = breaker
        self._is_ours = is_ours
        # Languages that were set while the hot store was unavailable: it must not answer with an older one.
        self._unsynced: LRUCache[Scope, str] = LRUCache(_MOST_UNSYNCED)

    async def touch(self, scope: Scope) -> Session:
        return await self._first_hot(scope, lambda sessions: sessions.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        """A session that the hot store does not have may have begun while it was unavailable: the archive has it."""
        found = await self._first_hot(scope, lambda sessions: sessions.read(scope))
        if found is not None:
            return found
        with suppress(StoreError):
            return await self._archived.read(scope)
        return None

    async def set_language(self, scope: Scope, language: str) -> None:
        async def set_language() -> bool:
            await self._hot.set_language(scope, language)
            self._unsynced.pop(_key(scope), None)
            return True

        if not await self._from_hot(set_language):
            await self._archived.set_language(scope, language)
            self._unsynced[_key(scope)] = language
            return
        try:
            await self._archived.set_language(scope, language)
        except StoreError as error:
            _log.warning("a session's language is not in the archive (%s)", type(error).__name__)

    async def erase(self, scope: Scope) -> Erased:
        """The archive's sessions only: the hot ones go with the archive's erase, under its generation."""
        return await self._archived.erase(scope)

    async def close(self) -> None:
        await self._hot.close()
        await self._archived.close()

    async def _first_hot(self, scope: Scope, verb: Callable[[Sessions], Awaitable[T]]) -> T:
        async def ask() -> tuple[T]:
            if (language := self._unsynced.get(_key(scope))) is not None:
                await self._hot.set_language(scope, language)
                self._unsynced.pop(_key(scope), None)
            return (await verb(self._hot),)

        answer = await self._from_hot(ask)
        return answer[0] if answer is not None else await verb(self._archived)

    async def _from_hot(self, question: Callable[[], Awaitable[T]]) -> T | None:
        """Return None while it is unavailable."""
        if not self._breaker.allows():
            return None
        try:
            if self._is_ours is not None:
                await self._is_ours()
            answer = await question()
        except HotStoreMismatch:
            return None
        except StoreError as error:
            self._breaker.failed(error)
            return None
        except ThreadkeepError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer


def _key(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)
