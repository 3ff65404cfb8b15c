"""Erasing what has projections: their part is told with the archive's, and nothing that was in flight stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from threadkeep.model import Erased, ErasureProof
from threadkeep.ports.embedding import Embedding
from threadkeep.scope import Scope


async def erase_with_vectors(
    embedding: Embedding | None, scope: Scope, message_id: str | None, erase: Callable[[], Awaitable[ErasureProof]]
) -> ErasureProof:
    """Before the archive, to tell how many there were; and after it, for those that were being made meanwhile."""
    if embedding is None:
        return await erase()
    before = await embedding.erase(scope, message_id)
    proof = await erase()
    after = await embedding.erase(scope, message_id)
    vectors = Erased(before.removed + after.found, before.removed + after.removed, after.failed)
    return replace(proof, stores={**proof.stores, "vectors": vectors})
