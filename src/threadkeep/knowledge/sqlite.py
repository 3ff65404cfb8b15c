"""Knowledge documents in the archive's own file."""

from __future__ import annotations

from threadkeep.knowledge import sqlite_steps
from threadkeep.knowledge.store import StoredKnowledge, TermsOf
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.sqlite.database import Database


class SqliteKnowledge(StoredKnowledge):
    def __init__(self, database: Database, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        super().__init__(database, sqlite_steps, terms_of, clock)
