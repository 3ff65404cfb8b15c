"""The `Sessions` port over any hot store."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.model import Erased, Message, Session
from threadkeep.ports.hot import Hot, HotStore
from threadkeep.scope import Scope


class HotSessions:
    def __init__(self, hot: HotStore) -> None:
        self._hot = hot

    async def touch(self, scope: Scope) -> Session:
        return _session(await self._hot.touch(scope))

    async def read(self, scope: Scope) -> Session | None:
        hot = await self._hot.read(scope, pending=0)
        return None if hot is None or hot.created_at is None else _session(hot)

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        await self._hot.refresh(scope, messages)

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._hot.set_language(scope, language)

    async def erase(self, scope: Scope) -> Erased:
        return (await self._hot.erase(scope))["sessions"]

    async def close(self) -> None:
        await self._hot.close()


def _session(hot: Hot) -> Session:
    assert hot.created_at is not None  # a live session has a beginning
    return Session(hot.scope, hot.created_at, hot.window, hot.language)
