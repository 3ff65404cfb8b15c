"""Searching knowledge documents: who may read is part of every query, of reading by id too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.db.statements import Dialect, Query, Verb, read_id
from threadkeep.index.vectors import model_number
from threadkeep.knowledge.erasing import reader_column
from threadkeep.ports.knowledge import Access, ChunkKey, Found, Passage, Question, Readable
from threadkeep.recall.bm25 import rarity
from threadkeep.recall.vectors import decode, fitting, nearest
from threadkeep.scope import length_prefixed

_MOST_COMPARED = 50_000  # vectors that a server may send for one question; SQLite reads its own file
_WEIGHT_UNITS = 1_000  # weights are whole numbers: databases add them up alike, in any order
_SHOWN = (
    "SELECT d.did, d.document_id, d.version, d.datasource, d.title, c.chunk, c.content, c.part,"
    " p.heading, p.content AS parent FROM tk_documents d JOIN tk_chunks c ON c.did = d.did"
    " JOIN tk_document_parts p ON p.did = c.did AND p.part = c.part"
)
_ChunkRow = tuple[int, int]  # a document's row id and the number of its chunk


@dataclass(frozen=True, slots=True)
class _Permitted:
    """A condition on `tk_documents d`, and what is bound there: the documents that an access may read."""

    where: str
    values: dict[str, Any]


def hashed(tenant: str, terms: Iterable[str]) -> list[int]:
    """Each distinct term once, as a 64-bit number keyed by tenant: terms of any length, and no readable index."""
    key = hashlib.blake2b(length_prefixed(("knowledge", tenant)), digest_size=32).digest()
    encoded = (term.encode("utf-8", "surrogatepass") for term in dict.fromkeys(terms))
    digests = (hashlib.blake2b(term, key=key, digest_size=8).digest() for term in encoded)
    return [int.from_bytes(digest, "big", signed=True) for digest in digests]


def search(access: Access, question: Question, dialect: Dialect) -> Verb[Found]:
    """Each chunk once: those found by words, rarest words first, then those found by their vectors alone."""
    permitted = _permitted(access, question.datasources, dialect)
    readable = yield from _readable(permitted)
    words = dict(zip(hashed(access.tenant, question.terms), dict.fromkeys(question.terms), strict=True))
    holding = yield from _holding(list(words), permitted, dialect)
    weights = {word: 1 + round(_WEIGHT_UNITS * rarity(n, readable.chunks)) for word, n in sorted(holding.items())}
    by_words = yield from _by_words(weights, question.k, permitted, dialect)
    by_vector = yield from _by_vector(question, permitted, dialect)
    wanted = list(dict.fromkeys((*by_words, *by_vector)))
    shown: dict[_ChunkRow, tuple[Any, ...]] = {}
    if wanted:
        at, values = dialect.in_pairs(("c.did", "c.chunk"), ("bigint", "bigint"), "at", wanted)
        query = f"{_SHOWN} WHERE {at} AND {permitted.where}"
        for row in (yield Query(query, values | permitted.values)):
            shown[row[0], row[5]] = _passage(row, dialect)
    passages = tuple(
        Passage(*shown[chunk], matched=by_words.get(chunk, 0), similarity=by_vector.get(chunk))
        for chunk in wanted
        if chunk in shown  # the others were removed between the queries
    )
    return Found(passages, readable, {words[word]: count for word, count in holding.items()})


def read(access: Access, keys: Sequence[ChunkKey], datasources: Sequence[str] | None, dialect: Dialect) -> Verb[Found]:
    permitted = _permitted(access, datasources, dialect)
    found: dict[ChunkKey, Passage] = {}
    if keys:
        pairs = list(dict.fromkeys((dialect.id(key.document_id), key.chunk) for key in keys))
        at, values = dialect.in_pairs(("d.document_id", "c.chunk"), ("text", "bigint"), "at", pairs)
        query = f"{_SHOWN} WHERE {at} AND {permitted.where}"
        for row in (yield Query(query, values | permitted.values)):
            passage = Passage(*_passage(row, dialect), matched=0)
            found[passage.key] = passage
    in_order = tuple(found[key] for key in dict.fromkeys(keys) if key in found)  # of the versions wanted
    return Found(in_order, (yield from _readable(permitted)))


def _permitted(access: Access, datasources: Sequence[str] | None, dialect: Dialect) -> _Permitted:
    conditions, values = ["d.tenant = :tenant"], dict[str, Any](tenant=dialect.id(access.tenant))
    if datasources is not None:
        these, bound = dialect.in_list("d.datasource", "source", [dialect.id(source) for source in datasources])
        conditions.append(these)
        values |= bound
    if not access.reads_all:
        conditions.append(_read_by("reader", access.user, dialect))
        values |= _user("reader", access.user, dialect)
    if access.acting is not None:
        conditions.append(_read_by("acting", access.acting, dialect))
        values |= _user("acting", access.acting, dialect)
    return _Permitted(" AND ".join(conditions), values)


def _read_by(name: str, user: str | None, dialect: Dialect) -> str:
    if user is None:
        return "d.access = 'public'"
    return (
        f"(d.access = 'public' OR d.owner = :{name} OR (d.access = 'shared' AND EXISTS (SELECT 1"  # noqa: S608
        f" FROM tk_document_readers r WHERE r.did = d.did AND r.{reader_column(dialect)} = :{name})))"
    )


def _user(name: str, user: str | None, dialect: Dialect) -> dict[str, Any]:
    return {} if user is None else {name: dialect.id(user)}


def _readable(permitted: _Permitted) -> Verb[Readable]:
    rows = yield Query(
        "SELECT count(*) AS documents, coalesce(max(d.version), 0) AS newest,"  # noqa: S608
        f" coalesce(sum(d.chunks), 0) AS chunks FROM tk_documents d WHERE {permitted.where}",
        permitted.values,
    )
    return Readable(*map(int, rows[0]))


def _holding(words: Sequence[int], permitted: _Permitted, dialect: Dialect) -> Verb[dict[int, int]]:
    """How many chunks hold each word."""
    if not words:
        return {}
    these, values = dialect.in_list("w.word", "word", words)
    rows = yield Query(
        "SELECT w.word, count(*) AS holding FROM tk_chunk_words w JOIN tk_documents d ON d.did = w.did"  # noqa: S608
        f" WHERE {these} AND {permitted.where} GROUP BY w.word",
        values | permitted.values,
    )
    return dict(map(tuple, rows))


def _by_words(
    weights: Mapping[int, int], k: int, permitted: _Permitted, dialect: Dialect
) -> Verb[dict[_ChunkRow, int]]:
    """The `k` chunks whose words weigh most together, and how many of the words each holds."""
    if not weights:
        return {}
    these, values = dialect.in_list("w.word", "word", list(weights))
    cases = " ".join(f"WHEN :is{number} THEN :weighs{number}" for number in range(len(weights)))
    for number, (word, weight) in enumerate(weights.items()):
        values |= {f"is{number}": word, f"weighs{number}": weight}
    rows = yield Query(
        f"SELECT w.did, w.chunk, count(*) AS matched, sum(CASE w.word {cases} ELSE 0 END) AS weight"  # noqa: S608
        f" FROM tk_chunk_words w JOIN tk_documents d ON d.did = w.did WHERE {these} AND {permitted.where}"
        " GROUP BY w.did, w.chunk ORDER BY weight DESC, w.did, w.chunk LIMIT :most",
        values | permitted.values | {"most": k},
    )
    return {(did, chunk): matched for did, chunk, matched, _ in rows}


def _by_vector(question: Question, permitted: _Permitted, dialect: Dialect) -> Verb[dict[_ChunkRow, float]]:
    model = question.model
    if model is None or question.vector is None:
        return {}
    vector = fitting(question.vector, model)[0]
    number = yield from model_number(model, dialect)
    if number is None:
        return {}
    limit = "" if dialect.is_sqlite else f" LIMIT {_MOST_COMPARED}"
    rows = yield Query(
        "SELECT v.did, v.chunk, v.vector FROM tk_chunk_vectors v JOIN tk_documents d ON d.did = v.did"  # noqa: S608
        f" WHERE v.model = :model AND {permitted.where} ORDER BY v.did, v.chunk{limit}",
        permitted.values | {"model": number},
    )
    found = nearest(decode([bytes(row[2]) for row in rows], model), vector, question.k)
    return {(rows[row][0], rows[row][1]): score for row, score in found}


def _passage(row: Any, dialect: Dialect) -> tuple[Any, ...]:
    """The fields of a `Passage` up to its parent's text."""
    _, document_id, version, source, title, chunk, content, part, heading, parent = row
    names = read_id(document_id), version, read_id(source), dialect.read_text(title)
    return *names, chunk, dialect.read_text(content), part, dialect.read_text(heading), dialect.read_text(parent)
