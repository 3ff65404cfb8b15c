"""Finding messages by their terms, in the archive's own database. Each kind of database looks terms up its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from threadkeep.db.database import Database
from threadkeep.db.sqlite_terms import TermsOf
from threadkeep.db.statements import Verb
from threadkeep.db.words import hashed
from threadkeep.index import fts5, gin, word_table
from threadkeep.index.gin import KnownHabits
from threadkeep.index.lookup import Found, WantedTerms
from threadkeep.ports.index import Lookup, Position
from threadkeep.scope import Scope


class DatabaseIndex:
    """See `ports.index`. On a server a lookup takes two queries, one more on PostgreSQL for a user not known yet."""

    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of
        self._known = KnownHabits()  # on PostgreSQL

    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        if self._database.dialect.is_sqlite:
            return await self._database.read(lambda: fts5.lookup(scope, terms, most, self._terms_of))
        wanted = WantedTerms(
            scope,
            dict(zip(terms, hashed(scope, terms), strict=True)),
            lambda content: hashed(scope, self._terms_of(content).split()),
        )
        return await self._database.read(lambda: self._hashed_lookup(wanted, most))

    def _hashed_lookup(self, wanted: WantedTerms, most: int) -> Verb[Lookup]:
        dialect = self._database.dialect
        if dialect.is_postgres:
            return gin.lookup(wanted, most, self._known, dialect)
        return word_table.lookup(wanted, most, dialect)

    async def turns(self, found: Lookup, positions: Collection[Position]) -> Found:
        if found.state is None or not positions:
            return [], {}
        return await self._database.read(lambda: self._turns(found, positions))

    def _turns(self, found: Lookup, positions: Collection[Position]) -> Verb[Found]:
        dialect = self._database.dialect
        if dialect.is_sqlite:
            return fts5.turns(found, positions, self._terms_of)
        uid, wanted = found.state
        return (gin if dialect.is_postgres else word_table).turns(uid, wanted, positions, dialect)
