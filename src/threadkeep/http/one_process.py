"""One process at a time answers a message: its model may be dear, and its tools may book a table.

A message that is sent again while it is being answered may reach another process, which waits here. Where no store is
shared that can tell, every process answers for itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from threadkeep.errors import StoreError
from threadkeep.ports.claims import Claims
from threadkeep.scope import Scope

T = TypeVar("T")

_log = logging.getLogger("threadkeep.http")
_SECONDS = 10.0  # so long others wait for a process that has died
_RENEWED_AFTER = 3.0
_LOOK_AGAIN_AFTER = 0.1


class OneProcess:
    def __init__(self, claims: Claims, seconds: float = _SECONDS) -> None:
        self._claims = claims
        self._seconds = seconds

    @asynccontextmanager
    async def at_work(self, scope: Scope, name: str, look: Callable[[], Awaitable[T]]) -> AsyncGenerator[T | None]:
        """Begins once no other process is at it, or nobody can tell; with what `look` saw before it had to wait."""
        holder, seen = secrets.token_hex(8), None
        while not await self._taken(scope, name, holder):
            seen = seen or await look()
            await asyncio.sleep(_LOOK_AGAIN_AFTER)
        holding = asyncio.create_task(self._hold_on(scope, name, holder), name="threadkeep-claim")
        try:
            yield seen
        finally:
            holding.cancel()
            with suppress(StoreError):  # it goes by itself
                await self._claims.give_back(scope, name, holder)

    async def _taken(self, scope: Scope, name: str, holder: str) -> bool:
        try:
            return await self._claims.take(scope, name, holder, self._seconds)
        except StoreError as error:
            _log.warning(json.dumps({"event": "unclaimed", "error": error.code}))
            return True

    async def _hold_on(self, scope: Scope, name: str, holder: str) -> None:
        while True:
            await asyncio.sleep(min(_RENEWED_AFTER, self._seconds / 3))
            await self._taken(scope, name, holder)
