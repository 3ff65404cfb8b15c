"""Finding messages by their terms in FTS5, in the archive's own file and transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from functools import partial

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import owner_of
from threadkeep.db.sqlite_terms import TermsOf
from threadkeep.index.sqlite_found import Words, waiting_of
from threadkeep.ports.evidence import Evidence, Place, Statistics
from threadkeep.ports.index import Search
from threadkeep.scope import Scope


class SqliteIndex:
    """See `ports.index`. One read, on one snapshot, for a whole question."""

    def __init__(self, database: SqliteDatabase, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def evidence(self, scope: Scope, search: Search) -> Evidence:
        besides = await search.besides()
        return await self._database.snapshot(partial(self._evidence, scope=scope, search=search, besides=besides))

    def _evidence(
        self, connection: sqlite3.Connection, scope: Scope, search: Search, besides: Collection[Place]
    ) -> Evidence:
        uid = owner_of(connection, scope)
        if uid is None:
            return Evidence(Statistics(0, 0.0, {}), (), {})
        words = Words(connection, uid, scope.conversation, waiting_of(connection, uid, self._terms_of))
        statistics = words.statistics(search.terms)
        postings, shapes = words.postings(search.worth_reading(statistics), search.most_postings)
        places = {*search.places(postings, statistics, shapes), *besides}
        return Evidence(statistics, *words.turns(places, search.terms))
