"""Many turns of many users into an archive, quickly: rows as the product makes them, in bulk, the words indexed last.

On PostgreSQL by COPY, a million turns in minutes; elsewhere through the archive, past policy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from threadkeep import Memory, Scope
from threadkeep.archive.sql.append import row_of
from threadkeep.index.pgvector import halfvec
from threadkeep.index.pgvector_graph import Graphs
from threadkeep.index.sqlite_vectors import number_for
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.vectors import ENCODING, encode
from threadkeep.sql.database import SqlDatabase
from threadkeep.sql.locks import Place
from threadkeep.sql.words import hashed
from threadkeep.testing.drafts import admitted, draft

IN_A_TALK = 50
_WORDS = 20_000
_SHORTEST, _LONGEST = 5, 60  # words of a turn
_ROWS_AT_ONCE = 20_000
_COLUMNS = ("mid", "cid", "seq", "id", "role", "modality", "content", "language", "meta", "ts", "words")
_TALK = ("cid", "uid", "conversation", "status", "last_seq", "messages", "activity", "terms")
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
        known.update(zip(new, hashed(self.scope, [terms_of(_SAID[number])[0] for number in new]), strict=True))
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


async def by_copy(url: str, those: list[Owner]) -> None:
    """Into PostgreSQL's tables, which are there and empty."""
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'tk_messages_by_words'")
        await connection.execute("DROP INDEX tk_messages_by_words")
        await _copy(connection, _Numbers(), those)
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


async def _copy(connection: Any, last: _Numbers, those: list[Owner]) -> None:
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
        place = Place(last.cid, last.uid, 0, 0, 0, 0)
        rows: list[tuple[Any, ...]] = []
        terms = 0
        for seq, text in enumerate(texts[first : first + IN_A_TALK], 1):
            last.mid += 1
            terms += len(text)
            kept = draft(said(text), id=f"m{last.mid}", role="user" if seq % 2 else "assistant")
            row = row_of(place, seq, kept, owner.words(text)) | {"mid": last.mid}
            rows.append(tuple(row[column] for column in _COLUMNS))
        times = (rows[0][_COLUMNS.index("ts")],) * len(_TIMES)
        talk = (last.cid, last.uid, f"c{number}", "active", len(rows), len(rows), number + 1, terms)
        yield talk + times, rows


class Drawn:
    """An embedder that knows nothing and takes no time: vectors drawn at random, of the offline embedder's size."""

    name = "bench:drawn"
    dimensions = 256

    def __init__(self) -> None:
        self._random = np.random.default_rng(3)

    async def embed(self, texts: Sequence[str]) -> Any:
        return self.vectors(len(texts))

    def vectors(self, count: int) -> Any:
        drawn = self._random.standard_normal((count, self.dimensions), np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    async def close(self) -> None: ...


async def with_vectors(url: str, embedder: Drawn) -> None:
    """One for each message of the archive."""
    if url.startswith("sqlite"):
        _into_file(url.removeprefix("sqlite:///"), embedder)
    else:
        await _into_pgvector(url, embedder)


def _into_file(path: str, embedder: Drawn) -> None:
    model = EmbeddingModel(embedder.name, embedder.dimensions)
    with closing(sqlite3.connect(path)) as connection, connection:
        number = number_for(connection, model)
        rows = connection.execute("SELECT uid, mid FROM tk_messages JOIN tk_conversations USING (cid)").fetchall()
        blobs = encode(embedder.vectors(len(rows)), model)
        connection.executemany(
            "INSERT INTO tk_vectors (uid, model, mid, chunk, vector) VALUES (?, ?, ?, 0, ?)",
            [(uid, number, mid, blob) for (uid, mid), blob in zip(rows, blobs, strict=True)],
        )


async def _into_pgvector(url: str, embedder: Drawn) -> None:
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        values = (embedder.name, embedder.dimensions, ENCODING)
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES ($1, $2, $3) RETURNING model"
        number = await connection.fetchval(insert, *values)
        rows = await connection.fetch("SELECT uid, mid FROM tk_messages JOIN tk_conversations USING (cid)")
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            made = zip(some, embedder.vectors(len(some)), strict=True)
            await connection.executemany(
                "INSERT INTO tk_pgvectors VALUES ($1, $2, $3, 0, $4::text::halfvec)",
                [(uid, number, mid, halfvec(vector)) for (uid, mid), vector in made],
            )
        await connection.execute("VACUUM ANALYZE tk_pgvectors")
    finally:
        await connection.close()
    await _with_graph(url)


async def _with_graph(url: str) -> None:
    """As the worker makes it in the background, where a user has very many vectors."""
    database = SqlDatabase.at(url)
    try:
        await Graphs(database).made()
    finally:
        await database.close()
