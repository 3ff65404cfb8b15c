"""Vectors of messages, for `threadkeep index`: how many are missing, which were given up on, and making them."""

from __future__ import annotations

from typing import Any

from threadkeep.compose.worker import embed_all, messages_given_up, open_embedding
from threadkeep.errors import EmbedderError
from threadkeep.ports.embedder import model_of
from threadkeep.settings import Settings

_MOST_LISTED = 1_000


async def messages_status(url: str | None, settings: Settings) -> dict[str, Any] | None:
    """None where messages get no vectors and got none. Only the running process knows how many wait."""
    failed = [one.as_dict() for one in await messages_given_up(url, settings, _MOST_LISTED)]
    async with open_embedding(url, settings) as parts:
        if parts is None:
            return {"waiting_for_vectors": None, "embed_failed": failed} if failed else None
        try:
            waiting = await parts.stores.backlog.count(await model_of(parts.embedder))
        except EmbedderError:
            waiting = None  # it does not say what its vectors are like
        return {"waiting_for_vectors": waiting, "embed_failed": failed}


async def rebuild_messages(url: str | None, settings: Settings) -> dict[str, int] | None:
    """Raises `EmbedderError` when the embedder does not answer."""
    async with open_embedding(url, settings, marks=True) as parts:
        if parts is None:
            return None
        embedded, failed = await embed_all(parts)
        return {"embedded": embedded, "embed_failed": failed}
