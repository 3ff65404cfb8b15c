"""Knowledge documents in the archive's own file."""

from __future__ import annotations

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.knowledge import sqlite_steps
from threadkeep.knowledge.store import StoredKnowledge, TermsOf
from threadkeep.ports.clock import Clock, system_clock


class SqliteKnowledge(StoredKnowledge):
    def __init__(self, database: SqliteDatabase, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        super().__init__(database, sqlite_steps, terms_of, clock)
