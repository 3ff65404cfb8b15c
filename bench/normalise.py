"""Terms: how well BM25 finds with ours beside plainer ones, what they cost an append, and what they add to the file.

Every contestant gets the same BM25. A question's own passage, or turns, is what it should find.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.bm25 import Bm25
from bench.normalise_terms import CONTESTANTS, Terms, without_marks
from bench.open_text import Passages, Talk, squad_like, talks
from bench.report import median, table
from threadkeep.archive.database import SqliteArchive
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.testing.drafts import new_scope, say

_LANGUAGES = {"en": "XQuAD en", "vi": "XQuAD vi", "pl": "PoQuAD", "zh-Hant": "DRCD"}
_MESSAGE = 600  # characters
_MESSAGES = 200


def main(args: argparse.Namespace) -> dict[str, Any]:
    most = 60 if args.quick else None
    sets = _sets(args.data, most)
    conversations = list(talks(args.data))[: 1 if args.quick else None]
    messages = {tag: _messages(squad_like(args.data, name).texts) for tag, name in _LANGUAGES.items()}
    contestants = {
        name: {
            "recall_at_1": {which: _recall_at_1(terms, one) for which, one in sets.items()},
            "locomo": _locomo(terms, conversations),
            "us_per_message": {tag: _microseconds(terms, found) for tag, found in messages.items()},
            "bytes_per_message": {tag: asyncio.run(_stored(terms, found)) for tag, found in messages.items()},
        }
        for name, terms in CONTESTANTS.items()
    }
    result = {"bench": "normalise", "contestants": contestants}
    if not args.json:
        print(rendered(result))
    return result


def _sets(data: Path, most: int | None) -> dict[str, Passages]:
    found = {name: squad_like(data, name) for name in ("XQuAD en", "XQuAD vi", "XQuAD zh", "DRCD", "PoQuAD")}
    for name in ("XQuAD vi", "PoQuAD"):
        bare = [(without_marks(question), passage, answer) for question, passage, answer in found[name].questions]
        found[f"{name}, asked without marks"] = Passages(found[name].texts, bare)
    return {name: Passages(one.texts, one.questions[:most]) for name, one in found.items()}


def _recall_at_1(terms: Terms, passages: Passages) -> float:
    search = Bm25([terms.of_text(text) for text in passages.texts])
    found = [search.best(terms.of_question(question), 1) for question, _, _ in passages.questions]
    gold = [passages.texts.index(passage) for _, passage, _ in passages.questions]
    return fmean(float(best == [right]) for best, right in zip(found, gold, strict=True))


def _locomo(terms: Terms, conversations: Sequence[Talk]) -> dict[str, float]:
    at_5: list[float] = []
    at_10: list[float] = []
    for talk in conversations:
        search = Bm25([terms.of_text(turn) for _, turn in talk.turns])
        for question, gold in talk.questions:
            best = [talk.turns[i][0] for i in search.best(terms.of_question(question), 10)]
            at_5.append(len(gold.intersection(best[:5])) / len(gold))
            at_10.append(len(gold.intersection(best)) / len(gold))
    return {"R@5": fmean(at_5), "R@10": fmean(at_10)}


def _messages(passages: Sequence[str]) -> list[str]:
    whole = "\n".join(passages)
    return [whole[start : start + _MESSAGE] for start in range(0, _MESSAGE * _MESSAGES, _MESSAGE)]


def _microseconds(terms: Terms, messages: Sequence[str]) -> float:
    """Of the median message, at its best of five: by then its words are known, as in a process that has run a while."""
    return median([min(_once(terms, text) for _ in range(5)) for text in messages]) * 1e6


def _once(terms: Terms, text: str) -> float:
    started = time.perf_counter()
    terms.indexed(text)
    return time.perf_counter() - started


async def _stored(terms: Terms, messages: Sequence[str]) -> float:
    """The whole file over its messages; without any terms, and so not findable, is what is left of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        database = SqliteDatabase(str(path))
        await database.open()
        archive = SqliteArchive(database, terms.indexed)
        for text in messages:
            await say(archive, new_scope(user="u1"), text)
        await archive.close()
        return path.stat().st_size / len(messages)


def rendered(result: dict[str, Any]) -> str:
    its = result["contestants"]
    first = next(iter(its.values()))

    def block(title: str, key: str) -> str:
        return table(
            title, ("", *first[key]), [(name, *(f"{v:.3f}" for v in one[key].values())) for name, one in its.items()]
        )

    def costs(title: str, key: str) -> str:
        return table(title, ("", *first[key]), [(name, *one[key].values()) for name, one in its.items()])

    return "\n".join(
        (
            block("R@1, BM25, 1,000 questions a set", "recall_at_1"),
            block("LoCoMo turns, BM25, no context", "locomo"),
            costs(f"µs to make the terms of a message of {_MESSAGE} characters", "us_per_message"),
            costs("bytes a message in the SQLite file, everything in it", "bytes_per_message"),
        )
    )
