"""Many turns of many users into an archive, quickly: rows as the product makes them, in bulk, the words indexed last.

On PostgreSQL by COPY, a million turns in minutes; elsewhere through the archive, past policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from bench.sessions_stores import OnePostgres
from threadkeep import Memory, Scope
from threadkeep.db.messages import row_of
from threadkeep.db.statements import POSTGRES
from threadkeep.db.terms import hashed
from threadkeep.recall.normalise import terms_of
from threadkeep.testing.drafts import admitted, draft

IN_A_TALK = 50
_WORDS = 20_000
_SHORTEST, _LONGEST = 5, 60  # words of a turn
_ROWS_AT_ONCE = 20_000
_COLUMNS = ("mid", "cid", "seq", "id", "role", "modality", "content", "language", "meta", "ts", "words")
_TALK = ("cid", "uid", "conversation", "status", "last_seq", "messages", "activity", "terms")
_ROOM = "ALTER DATABASE {database} SET maintenance_work_mem = '512MB'"  # for a graph of vectors, too, later on
_TIMES = ("started_at", "last_activity_at", "session_started_at", "session_expires_at")


class Words:
    """As in talk: a few words in every turn, most of them seldom. The same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def numbers(self, least: int, most: int) -> list[int]:
        return self.many(1, least, most)[0]

    def many(self, texts: int, least: int, most: int) -> list[list[int]]:
        lengths = self._random.integers(least, most, texts, endpoint=True)
        drawn = np.searchsorted(_OFTEN, self._random.random(int(lengths.sum())) * _OFTEN[-1], side="right")
        return [part.tolist() for part in np.split(drawn, np.cumsum(lengths)[:-1])]

    def text(self, least: int, most: int) -> str:
        return said(self.numbers(least, most))


_OFTEN = np.array(list(accumulate(1 / (number + 5) for number in range(_WORDS))))
_SAID = [f"w{number}x" for number in range(_WORDS)]


@cache
def _term(number: int) -> str:
    """The same for every owner, who each hash it in their own way."""
    return terms_of(_SAID[number])[0]


def said(numbers: list[int]) -> str:
    return " ".join([_SAID[number] for number in numbers])


@dataclass(frozen=True)
class Owner:
    scope: Scope
    turns: int
    seed: int

    @cached_property
    def _hashed(self) -> dict[int, int]:
        return {}

    def texts(self) -> list[list[int]]:
        return Words(self.seed).many(self.turns, _SHORTEST, _LONGEST)

    def words(self, numbers: list[int]) -> list[int]:
        """The search words of a text; those of each of its words are made once."""
        known = self._hashed
        new = [number for number in dict.fromkeys(numbers) if number not in known]
        known.update(zip(new, hashed(self.scope, map(_term, new)), strict=True))
        return [known[number] for number in numbers]


def owners(count: int, turns: int) -> list[Owner]:
    """Of one tenant; together they have as many turns."""
    return [Owner(Scope("shop", f"user{number}"), turns // count, 100 + number) for number in range(count)]


async def through_the_archive(memory: Memory, owner: Owner) -> None:
    texts = owner.texts()
    for number, first in enumerate(range(0, owner.turns, IN_A_TALK)):
        drafts = [
            draft(said(text), role="user" if turn % 2 else "assistant")
            for turn, text in enumerate(texts[first : first + IN_A_TALK])
        ]
        await memory._stores.archive.append(owner.scope.with_conversation(f"c{number}"), admitted(*drafts))


@contextmanager
def a_usual_postgres() -> Iterator[OnePostgres]:
    """With as much memory for pages as a server has that nobody has tuned; that of the tests gets by with less."""
    from tests.servers.locate import POSTGRES, Missing, locate_program
    from tests.servers.postgres import PostgresServer

    class Usual(PostgresServer):
        def command(self) -> Sequence[str | Path]:
            return [*super().command(), "--shared_buffers=128MB", "--max_wal_size=4GB"]

    found = locate_program(POSTGRES)
    assert not isinstance(found, Missing)
    with Usual(found.place) as server:
        yield OnePostgres(server)


async def by_copy(url: str, those: Sequence[Owner]) -> None:
    """Into PostgreSQL's tables, which are there and empty."""
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'tk_messages_by_words'")
        await connection.execute("DROP INDEX tk_messages_by_words")
        await _copy(connection, _Numbers(), those)
        await connection.execute(_ROOM.format(database=await connection.fetchval("SELECT current_database()")))
        await connection.execute("SET maintenance_work_mem = '512MB'")
        await connection.execute(index)
        for table, column in (("tk_owners", "uid"), ("tk_conversations", "cid"), ("tk_messages", "mid")):
            sequence = f"pg_get_serial_sequence('{table}', '{column}')"
            await connection.execute(f"SELECT setval({sequence}, (SELECT max({column}) FROM {table}))")  # noqa: S608
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


@dataclass
class _Numbers:
    """The last given."""

    uid: int = 0
    cid: int = 0
    mid: int = 0


async def _copy(connection: Any, last: _Numbers, those: Sequence[Owner]) -> None:
    talks: list[tuple[Any, ...]] = []
    rows: list[tuple[Any, ...]] = []
    for owner in those:
        last.uid += 1
        name = (last.uid, owner.scope.tenant, owner.scope.user)
        await connection.copy_records_to_table("tk_owners", records=[name], columns=("uid", "tenant", "user_id"))
        for talk, of_talk in _talks(owner, last):
            talks.append(talk)
            rows += of_talk
            if len(rows) >= _ROWS_AT_ONCE:
                await connection.copy_records_to_table("tk_messages", records=rows, columns=_COLUMNS)
                rows.clear()
    await connection.copy_records_to_table("tk_messages", records=rows, columns=_COLUMNS)
    await connection.copy_records_to_table("tk_conversations", records=talks, columns=_TALK + _TIMES)


def _talks(owner: Owner, last: _Numbers) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    texts = owner.texts()
    for number, first in enumerate(range(0, owner.turns, IN_A_TALK)):
        last.cid += 1
        rows: list[tuple[Any, ...]] = []
        terms = 0
        for seq, text in enumerate(texts[first : first + IN_A_TALK], 1):
            last.mid += 1
            terms += len(text)
            kept = draft(said(text), id=f"m{last.mid}", role="user" if seq % 2 else "assistant")
            row = row_of(last.cid, last.uid, seq, kept, owner.words(text), POSTGRES) | {"mid": last.mid}
            rows.append(tuple(row[column] for column in _COLUMNS))
        times = (rows[0][_COLUMNS.index("ts")],) * len(_TIMES)
        talk = (last.cid, last.uid, f"c{number}", "active", len(rows), len(rows), number + 1, terms)
        yield talk + times, rows
