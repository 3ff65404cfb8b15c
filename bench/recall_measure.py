"""Figures of a ranking: which share of the gold stands how high."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from bench.recall_sets import Archive, Asked

Ranked = Sequence[str]  # ids of turns, best first
Ranker = Callable[[Archive], Callable[[str], Ranked]]  # an archive indexed, then asked
DEPTH = 60


def share(ranked: Ranked, gold: frozenset[str], k: int) -> float:
    return len(gold.intersection(ranked[:k])) / len(gold)


def reciprocal(ranked: Ranked, gold: frozenset[str]) -> float:
    return next((1 / place for place, one in enumerate(ranked, 1) if one in gold), 0.0)


def all_conversations(ranked: Ranked, archive: Archive, asked: Asked, k: int = 5) -> float:
    where = {one.id: one.conversation for one in archive.said}
    first = list(dict.fromkeys(where[one] for one in ranked))[:k]
    return float(asked.conversations <= set(first))


def figures(ranker: Ranker, archives: Sequence[Archive]) -> dict[str, float]:
    """Every question counts alike. A question whose gold is not among the turns counts for its conversations only."""
    rows: list[dict[str, float]] = []
    sessions: list[float] = []
    for archive in archives:
        ask = ranker(archive)
        for asked in archive.asked:
            ranked = ask(asked.question)
            sessions.append(all_conversations(ranked, archive, asked))
            if asked.gold:
                rows.append(_row(ranked, asked.gold))
    told = {key: fmean(row[key] for row in rows) for key in rows[0]}
    return {**told, "all@5": fmean(sessions), "questions": float(len(rows))}


def _row(ranked: Ranked, gold: frozenset[str]) -> dict[str, float]:
    return {
        "R@1": share(ranked, gold, 1),
        "R@5": share(ranked, gold, 5),
        "R@10": share(ranked, gold, 10),
        "MRR": reciprocal(ranked, gold),
    }
