"""What erasing a user needs of knowledge documents and of answers cached from them: without numpy, since whoever erases
may not have it."""

from __future__ import annotations

from functools import partial
from typing import Any

from threadkeep.model import Erased
from threadkeep.ports.cache import Entries
from threadkeep.ports.knowledge import KnowledgeErasure
from threadkeep.scope import Scope


class ErasedDocuments:
    """A `KnowledgeErasure`. `step` erases on a connection of the database."""

    def __init__(self, database: Any, step: Any) -> None:
        self._database = database
        self._step = step

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        count = await self._database.transact(partial(self._step, scope=scope))
        return Erased(count, count)


class ErasedCaches:
    """The documents' part, and the cached answers' after it: what was cached meanwhile goes too."""

    def __init__(self, documents: KnowledgeErasure, entries: Entries) -> None:
        self._documents = documents
        self._entries = entries

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        documents = await self._documents.erase(scope)
        cached = await self._entries.erase(scope.whole_user)
        return Erased(documents.found + cached, documents.removed + cached, documents.failed)
