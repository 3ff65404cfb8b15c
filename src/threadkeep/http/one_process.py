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
_SECONDS = 10.0  # so long others wait for a process that has died, or that the store can no longer tell of
_RENEWED_AFTER = 3.0
_LOOK_AGAIN_AFTER, _LONGEST_PAUSE = 0.1, 1.0
_PAUSE_OF_THE_WAIT = 0.1  # who has waited long need not look as often


class OneProcess:
    def __init__(self, claims: Claims, seconds: float = _SECONDS) -> None:
        self._claims = claims
        self._seconds = seconds
        self._renewed_after = min(_RENEWED_AFTER, seconds / 3)

    @asynccontextmanager
    async def at_work(self, scope: Scope, name: str, look: Callable[[], Awaitable[T]]) -> AsyncGenerator[T | None]:
        """Begins once no other process is at it, or nobody can tell; with what `look` saw before it had to wait."""
        holder = secrets.token_hex(8)
        seen = await self._waited(scope, name, holder, look)
        holding = asyncio.create_task(self._hold_on(scope, name, holder), name="threadkeep-claim")
        try:
            yield seen
        finally:
            holding.cancel()
            with suppress(StoreError):  # it goes by itself
                await self._claims.give_back(scope, name, holder)

    async def _waited(self, scope: Scope, name: str, holder: str, look: Callable[[], Awaitable[T]]) -> T | None:
        """Another process does not stop because the store is away: it has as long as it would have had to die."""
        seen, others_until, now = None, 0.0, asyncio.get_running_loop().time
        began = now()
        while True:
            try:
                if await self._claims.take(scope, name, holder, self._seconds):
                    return seen
                others_until, waited = now() + self._seconds, now() - began
                pause = min(max(_LOOK_AGAIN_AFTER, waited * _PAUSE_OF_THE_WAIT), _LONGEST_PAUSE)
            except StoreError as error:
                if now() >= others_until:
                    _log.warning(json.dumps({"event": "unclaimed", "error": error.code}))
                    return seen
                pause = min(self._renewed_after, others_until - now())
            seen = seen or await look()
            await asyncio.sleep(pause)

    async def _hold_on(self, scope: Scope, name: str, holder: str) -> None:
        pause = self._renewed_after
        while True:
            await asyncio.sleep(pause)
            try:
                await self._claims.take(scope, name, holder, self._seconds)
                pause = self._renewed_after
            except StoreError:
                pause = _LOOK_AGAIN_AFTER  # a store that has lost the claim is told of it before others look again
