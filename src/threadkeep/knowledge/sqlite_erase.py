"""Erasing a user's documents from the archive's own file."""

from __future__ import annotations

import sqlite3

from threadkeep.scope import Scope

_PRIVATE = "DELETE FROM tk_documents WHERE tenant = ? AND owner = ? AND access <> 'public'"
_PUBLIC = "UPDATE tk_documents SET owner = NULL WHERE tenant = ? AND owner = ?"
_READER = "DELETE FROM tk_document_readers WHERE did IN (SELECT did FROM tk_documents WHERE tenant = ?) AND user = ?"


def erase(connection: sqlite3.Connection, scope: Scope) -> int:
    of_user = (scope.tenant, scope.user)
    return sum(connection.execute(statement, of_user).rowcount for statement in (_PRIVATE, _PUBLIC, _READER))
