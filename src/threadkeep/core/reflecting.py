"""Keeping a reflection: redacted, with its evidence, and never of what was erased while it was made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from threadkeep.core.stores import Stores
from threadkeep.errors import CapabilityMissing, InvalidInput, ScopeErased, StoreUnavailable
from threadkeep.model import Erased, History, HistoryRange, Reflection
from threadkeep.ports.redactor import Redactor
from threadkeep.ports.reflections import Reflections
from threadkeep.record import ConversationRecord, ReflectionKind, StoredReflection
from threadkeep.scope import Scope

_ALL = 1_000_000
_NEWEST = 5


class Reflecting:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def keep(
        self,
        scope: Scope,
        reflection: Reflection,
        evidence: Sequence[str],
        at: datetime,
        redactor: Redactor,
        kind: ReflectionKind = "turn",
    ) -> bool:
        """False when what it was made of is erased, or when it repeats what the user has erased.

        The latest turn, where others read it, is updated too."""
        if not evidence:
            raise InvalidInput("evidence", "is empty", "name the messages it was made from")
        kept, before = self._kept(), await self._generation(scope)
        masked = Reflection(
            redactor(reflection.summary).text, tuple(redactor(cause).text for cause in reflection.causes)
        )
        stored = StoredReflection(masked, tuple(evidence), at, kind)
        if any(await self._stores.archive.erased_among(scope, [masked.summary, *masked.causes])):
            return False
        if not await kept.put(scope, stored):
            return False
        now = await self._generation(scope)
        # Generations only rise: a lower one is that of a store that has not heard of the last erase.
        if now > before or (scope.generation is not None and scope.generation < max(before, now)):
            await kept.erase(scope)
            return False
        await self._update_latest(scope, stored)
        return True

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        return await self._kept().of(scope, kind, limit)

    async def recorded(self, record: ConversationRecord) -> ConversationRecord:
        """With all that was thought of the conversation."""
        if self._stores.reflections is None:
            return record
        place = Scope(record.tenant, record.user, record.conversation)
        turns = await self._stores.reflections.of(place, "turn", _ALL)
        rolling = await self._stores.reflections.of(place, "rolling", _ALL)
        session = await self._stores.reflections.of(place, "session", _ALL)
        return replace(record, reflections=(*reversed(turns), *rolling, *session))

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """With a user's reflections goes what is counted of the user."""
        if self._stores.reflections is None:
            return Erased()
        try:
            if message_id is not None:
                await self._blank_latest(scope, message_id)
            removed = await self._stores.reflections.erase(scope, message_id)
            if self._stores.ledger is not None and message_id is None:
                lines = await self._stores.ledger.erase(scope)
                removed = Erased(removed.found + lines.found, removed.removed + lines.removed)
        except StoreUnavailable:
            return Erased(found=1, failed=1)
        return removed

    def _kept(self) -> Reflections:
        if self._stores.reflections is None:
            raise CapabilityMissing("these stores keep no reflections")
        return self._stores.reflections

    async def _generation(self, scope: Scope) -> int:
        history: History = await self._stores.archive.messages(scope, HistoryRange(limit=1))
        return history.scope.generation or 0

    async def _blank_latest(self, scope: Scope, message_id: str) -> None:
        """The latest turn shows one of the newest reflections, under the last message that it was made from."""
        if self._stores.latest is not None:
            for stored in await self._kept().of(scope, "turn", _NEWEST):
                if message_id in stored.evidence:
                    await self._update_latest(scope, replace(stored, reflection=Reflection("")))

    async def _update_latest(self, scope: Scope, stored: StoredReflection) -> None:
        """It expires by itself: a hot store that is unavailable is not waited for."""
        if self._stores.latest is not None and stored.kind == "turn":
            with suppress(StoreUnavailable, ScopeErased):
                await self._stores.latest.set_latest_reflection(scope, stored.evidence[-1], stored.reflection)
