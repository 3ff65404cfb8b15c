"""A search reads the turns it ranks, not the conversations they stand in."""

from __future__ import annotations

from sqlalchemy import text

from tests.servers.server import Server
from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.db.server import ServerDatabase
from threadkeep.db.statements import Query
from threadkeep.index import gin
from threadkeep.index.hashed_terms import WantedTerms
from threadkeep.ports.index import Position
from threadkeep.recall.normalise import every_term
from threadkeep.scope import Scope
from threadkeep.testing.drafts import admitted, new_scope

_TALKS, _TURNS = 60, 60


async def _talk(archive: ServerArchive, user: Scope) -> None:
    for number in range(_TALKS):
        said = [f"turn {turn} of talk {number}" for turn in range(_TURNS)]
        await archive.append(user.with_conversation(f"c{number}"), admitted(*said))


async def _analysed(database: ServerDatabase) -> None:
    async with database.engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("ANALYZE tk_messages, tk_conversations"))


async def test_of_long_conversations_only_the_turns_around_what_was_found_are_read(postgres_server: Server) -> None:
    database = ServerDatabase.at(postgres_server.url)
    await ensure_schema(database, migrate_if_needed=True)
    user = new_scope()
    await _talk(ServerArchive(database, every_term), user)
    await _analysed(database)

    (row,) = await database.rows("SELECT uid FROM tk_owners WHERE user_id = :user", {"user": user.user})
    places = [Position(f"c{talk}", seq) for talk in range(_TALKS) for seq in (30, 31)]
    wanted = WantedTerms(user.whole_user, {}, lambda _: [])
    verb = gin.turns(row[0], wanted, places, database.dialect)
    statement = next(verb)
    assert isinstance(statement, Query)
    described = await database.rows(f"EXPLAIN (ANALYZE) {statement.text}", statement.values)
    plan = "\n".join(line[0] for line in described)
    turns, _ = await database.read(lambda: gin.turns(row[0], wanted, places, database.dialect))
    await database.close()
    assert len(turns) == 2 * _TALKS
    _, found, of_messages = plan.partition("tk_messages_by_seq")  # what comes before is of the few conversations
    assert found, plan
    assert "Rows Removed" not in of_messages, plan
