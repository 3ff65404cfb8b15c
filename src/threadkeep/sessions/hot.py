"""The `Sessions` port over any hot store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from threadkeep.model import Erased, Message, Session
from threadkeep.ports.hot import Hot, HotStore
from threadkeep.scope import Scope


class FollowsArchive(Protocol):
    """Brings a hot store up to date with an archive that took messages while the hot store was unavailable."""

    async def catch_up(self, scope: Scope) -> None: ...

    async def completed(self, scope: Scope, hot: Hot) -> Hot: ...


class HotSessions:
    """`following` is None where no archive is behind the hot store: its window is all there is."""

    def __init__(self, hot: HotStore, following: FollowsArchive | None = None) -> None:
        self._hot = hot
        self._following = following

    async def touch(self, scope: Scope) -> Session:
        await self._catch_up(scope)
        return await self._session(scope, await self._hot.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        await self._catch_up(scope)
        hot = await self._hot.read(scope, pending=0)
        return None if hot is None or hot.created_at is None else await self._session(scope, hot)

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        await self._hot.refresh(scope, messages)

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._hot.set_language(scope, language)

    async def erase(self, scope: Scope) -> Erased:
        return (await self._hot.erase(scope))["sessions"]

    async def close(self) -> None:
        await self._hot.close()

    async def _catch_up(self, scope: Scope) -> None:
        if self._following is not None:
            await self._following.catch_up(scope)

    async def _session(self, scope: Scope, hot: Hot) -> Session:
        assert hot.created_at is not None  # a live session has a beginning
        shown = hot if self._following is None else await self._following.completed(scope, hot)
        return Session(shown.scope, hot.created_at, shown.window, shown.language)
