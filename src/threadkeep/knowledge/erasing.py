"""What erasing a user needs of knowledge documents: without numpy, since whoever erases may not have it."""

from __future__ import annotations

from functools import partial
from typing import Any

from threadkeep.model import Erased
from threadkeep.scope import Scope


class ErasedDocuments:
    """A `KnowledgeErasure`. `step` erases on a connection of the database."""

    def __init__(self, database: Any, step: Any) -> None:
        self._database = database
        self._step = step

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        count = await self._database.write(partial(self._step, scope=scope))
        return Erased(count, count)
