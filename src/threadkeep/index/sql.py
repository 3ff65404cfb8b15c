"""Finding messages by the hashed words of each, in the archive's own server database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from threadkeep.db.driver import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.db.words import hashed
from threadkeep.index.habits import KnownHabits
from threadkeep.index.sql_found import Asked
from threadkeep.index.sql_found_mysql import MySqlWords
from threadkeep.index.sql_found_postgres import PostgresWords
from threadkeep.ports.evidence import Evidence, Place, Statistics
from threadkeep.ports.index import Search
from threadkeep.scope import Scope

TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces


class SqlIndex:
    """See `ports.index`. Three round trips for a question; four on MySQL, and on PostgreSQL of users not known yet."""

    def __init__(self, database: ServerDatabase, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of
        self._known = KnownHabits()

    async def evidence(self, scope: Scope, search: Search) -> Evidence:
        """The words are looked up while `besides` is found out; then the turns of both are read."""
        asked = Asked(scope, dict(zip(search.terms, hashed(scope, search.terms), strict=True)), self._words_of)
        uid, statistics, places = await self._database.direct(partial(self._by_words, asked=asked, search=search))
        places = {*places, *await search.besides()}
        if uid is None or not places:
            return Evidence(statistics, (), {})
        return Evidence(
            statistics, *await self._database.direct(lambda line: self._words(line, asked).turns(uid, places))
        )

    async def _by_words(
        self, line: DriverConnection, asked: Asked, search: Search
    ) -> tuple[int | None, Statistics, Iterable[Place]]:
        words = self._words(line, asked)
        uid, statistics = await words.statistics()
        if uid is None:
            return None, statistics, ()
        chosen = search.worth_reading(statistics)
        postings, shapes = await words.postings(uid, chosen, search.most_postings) if chosen else (iter(()), {})
        return uid, statistics, search.places(postings, statistics, shapes)

    def _words(self, line: DriverConnection, asked: Asked) -> PostgresWords | MySqlWords:
        on_postgres = self._database.engine.dialect.name == "postgresql"
        return PostgresWords(line, asked, self._known) if on_postgres else MySqlWords(line, asked)

    def _words_of(self, scope: Scope, content: str) -> Sequence[int]:
        return hashed(scope, self._terms_of(content).split())
