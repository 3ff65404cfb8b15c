"""What others do with the same turns and the same embedder. Turns are shuffled first: ties must not favour the gold."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bench.bm25 import Bm25
from bench.recall_measure import DEPTH, Ranked, Ranker
from bench.recall_memory import Said
from bench.recall_sets import Archive
from bench.recall_vectors import vectors_of
from threadkeep.recall.normalise import query_terms, terms_of

Ask = Callable[[str], Ranked]


def shuffled(archive: Archive) -> list[Said]:
    said = list(archive.said)
    random.Random(7).shuffle(said)
    return said


def bm25_turns(archive: Archive) -> Ask:
    said = shuffled(archive)
    search = Bm25([terms_of(one.text) for one in said])
    return lambda question: [said[row].id for row in search.best(query_terms(question), DEPTH)]


def bm25_previous_and_current(archive: Archive) -> Ask:
    before: dict[str, str] = {}
    texts: dict[str, str] = {}
    for one in archive.said:
        texts[one.id] = f"{before.get(one.conversation, '')} {one.text}"
        before[one.conversation] = one.text
    said = shuffled(archive)
    search = Bm25([terms_of(texts[one.id]) for one in said])
    return lambda question: [said[row].id for row in search.best(query_terms(question), DEPTH)]


def fts5(archive: Archive) -> Ask:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE turns USING fts5(id UNINDEXED, text)")
    database.executemany("INSERT INTO turns VALUES (?, ?)", [(one.id, one.text) for one in shuffled(archive)])

    def ask(question: str) -> Ranked:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        sql = "SELECT id FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in database.execute(sql, (words, DEPTH))] if words else []

    return ask


def dense(archive: Archive) -> Ask:
    said = shuffled(archive)
    vectors = vectors_of([one.text for one in said])

    def ask(question: str) -> Ranked:
        cosines = vectors @ vectors_of([question])[0]
        return [said[row].id for row in np.argsort(-cosines, kind="stable")[:DEPTH]]

    return ask


def reciprocal_ranks(archive: Archive) -> Ask:
    legs = (bm25_turns(archive), dense(archive))
    return lambda question: _fused([leg(question) for leg in legs])


def _fused(rankings: Sequence[Ranked]) -> Ranked:
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, one in enumerate(ranking, 1):
            scores[one] = scores.get(one, 0.0) + 1 / (60 + place)
    return sorted(scores, key=lambda one: -scores[one])


BASELINES: Mapping[str, Ranker] = {
    "BM25, turns": bm25_turns,
    "BM25, previous + current": bm25_previous_and_current,
    "SQLite FTS5": fts5,
    "vectors (wordllama)": dense,
    "reciprocal ranks of BM25 and vectors": reciprocal_ranks,
}
