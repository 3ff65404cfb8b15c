"""Sessions on a hot store, with the archive's own to fall back on while it is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from threadkeep.errors import StoreUnavailable
from threadkeep.model import Erased, Message, Session
from threadkeep.ports.sessions import Sessions
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

T = TypeVar("T")
_log = logging.getLogger("threadkeep.stores")


class FallbackSessions:
    """The language is kept in both, so that an outage of either does not ask for it again."""

    def __init__(self, hot: Sessions, archived: Sessions, breaker: Breaker) -> None:
        self._hot = hot
        self._archived = archived
        self._breaker = breaker

    async def touch(self, scope: Scope) -> Session:
        return await self._first_hot(lambda sessions: sessions.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        return await self._first_hot(lambda sessions: sessions.read(scope))

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        await self._first_hot(lambda sessions: sessions.extend(scope, messages))

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._first_hot(lambda sessions: sessions.set_language(scope, language))
        if self._breaker.is_open:
            return  # the archive's was set in its place
        try:
            await self._archived.set_language(scope, language)
        except StoreUnavailable as error:
            _log.warning("the archive was not told a session's language (%s)", type(error).__name__)

    async def erase(self, scope: Scope) -> Erased:
        """The archive's sessions only: the hot ones go with the archive's erase, under its generation."""
        return await self._archived.erase(scope)

    async def close(self) -> None:
        await self._hot.close()
        await self._archived.close()

    async def _first_hot(self, verb: Callable[[Sessions], Awaitable[T]]) -> T:
        if self._breaker.allows():
            try:
                answer = await verb(self._hot)
            except StoreUnavailable as error:
                self._breaker.failed(error)
            else:
                self._breaker.succeeded()
                return answer
        return await verb(self._archived)
