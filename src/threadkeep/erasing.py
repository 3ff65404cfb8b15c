"""Erasing everywhere: every store tells its part, one that cannot be reached says so, and nothing in flight stays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from threadkeep.errors import StoreUnavailable
from threadkeep.model import Erased, ErasureProof
from threadkeep.ports.checkpoints import TELLS_FROM_MEMORY
from threadkeep.reflecting import Reflecting
from threadkeep.resilience.one_call import one_call
from threadkeep.scope import Scope
from threadkeep.stores import Stores

_NOT_REACHED = Erased(found=1, failed=1)
_SPARED = (
    "checkpoints of a graph's thread of this name are left as they are, whatever they hold of the message:"
    " erase the conversation to remove them"
)


class Erasing:
    def __init__(self, stores: Stores, reflecting: Reflecting) -> None:
        self._stores = stores
        self._reflecting = reflecting

    async def message(self, scope: Scope, message_id: str) -> ErasureProof:
        """Reflections and checkpoints after it too, for those that were being made meanwhile."""
        with one_call(shared=False):
            await self._reflecting.erase(scope, message_id)
            before = await self._retold(scope)
            proof = await self._archive(scope, message_id)
            await self._reflecting.erase(scope, message_id)
            return _with_checkpoints(proof, _both(before, await self._retold(scope)))

    async def _retold(self, scope: Scope) -> Erased:
        """Threads that are told anew from memory in each turn lose nothing by it; others are not ours to remove."""
        if self._stores.checkpoints is None:
            return Erased()
        return await _told(self._stores.checkpoints.erase(scope, TELLS_FROM_MEMORY))

    async def everything(self, scope: Scope) -> ErasureProof:
        """A store that did not answer is told as such by each of its parts, and waited for by the first."""
        with one_call(shared=False):
            return await self._everything(scope)

    async def _everything(self, scope: Scope) -> ErasureProof:
        sessions = await self._stores.sessions.erase(scope)
        before, knowledge = await self._checkpoints(scope), await self._knowledge(scope)
        # At once: both may have to wait for the same store that does not answer.
        scratch, proof = await asyncio.gather(_told(self._scratch(scope)), self._archive(scope))
        after = await self._checkpoints(scope)  # those that were being made meanwhile
        if any(part.removed for part in after.values()):
            proof = _joined(proof, await self._archive(scope))  # which scrubs what these have left behind
        made = {name: _both(part, after[name]) for name, part in before.items()}
        return replace(proof, stores={"sessions": sessions, **proof.stores, "scratch": scratch} | made | knowledge)

    async def _archive(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """Vectors before it, to tell how many there were; and after it, for those that were being made meanwhile."""
        embedding = self._stores.embedding
        if embedding is None:
            return await self._stores.archive.erase(scope, message_id)
        before = await embedding.erase(scope, message_id)
        proof = await self._stores.archive.erase(scope, message_id)
        after = await embedding.erase(scope, message_id)
        vectors = Erased(before.removed + after.found, before.removed + after.removed, after.failed)
        return replace(proof, stores={**proof.stores, "vectors": vectors})

    async def _scratch(self, scope: Scope) -> Erased:
        """It has a TTL of its own: that it cannot be reached now must not keep the rest from being erased."""
        kept = [self._stores.scratch, *([self._stores.slots] if self._stores.slots else [])]
        with one_call(shared=scope.conversation is not None):
            removed = sum(await asyncio.gather(*(store.erase(scope) for store in kept)))
        return Erased(removed, removed)

    async def _checkpoints(self, scope: Scope) -> dict[str, Erased]:
        """Before the archive, which then scrubs what they have left behind."""
        erased: dict[str, Erased] = {}
        for name, store in (("checkpoints", self._stores.checkpoints), ("items", self._stores.items)):
            if store is not None:
                erased[name] = await _told(store.erase(scope))
        if self._stores.reflections is not None:
            erased["reflections"] = await self._reflecting.erase(scope)
        return erased

    async def _knowledge(self, scope: Scope) -> dict[str, Erased]:
        if self._stores.knowledge is None or scope.conversation is not None:
            return {}
        return {"knowledge": await _told(self._stores.knowledge.erase(scope))}


def _with_checkpoints(proof: ErasureProof, checkpoints: Erased) -> ErasureProof:
    if not checkpoints.found:
        return proof
    stores = {**proof.stores, "checkpoints": checkpoints}
    spared = checkpoints.found > checkpoints.removed + checkpoints.failed
    return replace(proof, stores=stores, notes=(*proof.notes, _SPARED) if spared else proof.notes)


def _joined(first: ErasureProof, then: ErasureProof) -> ErasureProof:
    return replace(
        then, stores={name: _both(first.stores.get(name, Erased()), part) for name, part in then.stores.items()}
    )


def _both(first: Erased, then: Erased) -> Erased:
    """What failed at first may be gone by now."""
    return Erased(first.removed + then.found, first.removed + then.removed, then.failed)


async def _told(erasing: Awaitable[Erased]) -> Erased:
    try:
        return await erasing
    except StoreUnavailable:
        return _NOT_REACHED
