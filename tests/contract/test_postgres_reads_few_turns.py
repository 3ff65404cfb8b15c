"""A search reads the turns it ranks, not the conversations they stand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import text

from tests.servers.server import Server
from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.db.driver import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.index.habits import KnownHabits
from threadkeep.index.sql_found import Asked
from threadkeep.index.sql_found_postgres import PostgresWords
from threadkeep.ports.evidence import Place
from threadkeep.recall.every_term import every_term
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


class Describing:
    """A line that lets the server tell what it does for each statement, before it does it."""

    def __init__(self, line: DriverConnection) -> None:
        self._line = line
        self.plan = ""

    async def rows(self, statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
        told = await self._line.rows(f"EXPLAIN (ANALYZE) {statement}", values)
        self.plan = "\n".join(row[0] for row in told)
        return await self._line.rows(statement, values)


async def test_of_long_conversations_only_the_turns_around_what_was_found_are_read(postgres_server: Server) -> None:
    database = ServerDatabase.at(postgres_server.url)
    await ensure_schema(database, migrate_if_needed=True)
    user = new_scope()
    await _talk(ServerArchive(database, every_term), user)
    await _analysed(database)

    async def read(line: DriverConnection) -> tuple[str, int]:
        described = Describing(line)
        rows = await line.rows("SELECT uid FROM tk_owners WHERE user_id = :user", {"user": user.user})
        words = PostgresWords(
            cast(DriverConnection, described), Asked(user.whole_user, {}, lambda *_: []), KnownHabits()
        )
        turns, _ = await words.turns(rows[0][0], [Place(f"c{talk}", seq) for talk in range(_TALKS) for seq in (30, 31)])
        return described.plan, len(turns)

    plan, read_turns = await database.direct(read)
    await database.close()
    assert read_turns == 2 * _TALKS
    _, found, of_messages = plan.partition("tk_messages_by_seq")  # what comes before is of the few conversations
    assert found, plan
    assert "Rows Removed" not in of_messages, plan
