"""What erasing a user needs of knowledge documents and of answers cached from them.

Without numpy, which a process that erases may not have.
"""

from __future__ import annotations

from functools import partial

from threadkeep.db.database import Database
from threadkeep.db.statements import Change, Dialect, Verb
from threadkeep.model import Erased
from threadkeep.ports.cache import Entries
from threadkeep.ports.knowledge import KnowledgeErasure
from threadkeep.scope import Scope


def reader_column(dialect: Dialect) -> str:
    """The column of `tk_document_readers` that names the reader: `user` is a reserved word on servers."""
    return "user" if dialect.is_sqlite else "user_id"


def erase(user: Scope, dialect: Dialect) -> Verb[int]:
    """Delete the user's own documents, take their name off public ones and off others' readers. Return the rows."""
    values = {"tenant": dialect.id(user.tenant), "user": dialect.id(user.user)}
    owned = "tenant = :tenant AND owner = :user"
    count = 0
    for statement in (
        f"DELETE FROM tk_documents WHERE {owned} AND access <> 'public'",  # noqa: S608
        f"UPDATE tk_documents SET owner = NULL WHERE {owned}",  # noqa: S608
        "DELETE FROM tk_document_readers WHERE did IN (SELECT did FROM tk_documents WHERE tenant = :tenant)"  # noqa: S608
        f" AND {reader_column(dialect)} = :user",
    ):
        count += yield Change(statement, values)
    return count


class ErasedDocuments:
    """A `KnowledgeErasure` on the archive's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        count = await self._database.write(partial(erase, scope, self._database.dialect))
        return Erased(count, count)


class ErasedCaches:
    """A `KnowledgeErasure` of documents, then of cached answers: also of those cached while documents were erased."""

    def __init__(self, documents: KnowledgeErasure, entries: Entries) -> None:
        self._documents = documents
        self._entries = entries

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        documents = await self._documents.erase(scope)
        cached = await self._entries.erase(scope.whole_user)
        return Erased(documents.found + cached, documents.removed + cached, documents.failed)
