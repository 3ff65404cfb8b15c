"""Knowledge documents in the archive's own server database."""

from __future__ import annotations

from threadkeep.db.server import ServerDatabase
from threadkeep.knowledge.sql import steps
from threadkeep.knowledge.store import StoredKnowledge, TermsOf
from threadkeep.ports.clock import Clock, system_clock


class SqlKnowledge(StoredKnowledge):
    def __init__(self, database: ServerDatabase, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        super().__init__(database, steps, terms_of, clock)
