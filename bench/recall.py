"""Recall: how high the turns that answer a question stand, ours beside simpler ways, on sets of several kinds.

Ours is the product (`open_memory`, `append`, `recall`) on the database named, SQLite if none, with its offline embedder
and no LLM. One configuration serves every set. `left out` is LoCoMo with weights learnt without the talk that is asked
about, ranked from memory, as are follow-ups.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.normalise_terms import without_marks
from bench.recall_baselines import BASELINES
from bench.recall_learn import Group, learnt, taught
from bench.recall_measure import DEPTH, Ranked, Ranker, figures, share
from bench.recall_memory import MemoryIndex
from bench.recall_peers import peers
from bench.recall_product import product
from bench.recall_sets import PASSAGES, Archive, follow_ups, locomo, long_answers, longmemeval, passages
from bench.recall_vectors import vectors_of
from bench.report import median, p95, table
from threadkeep.recall.question import Asked, Question, enriched
from threadkeep.recall.score import DEFAULT, fused

_MOST_FOR_PEERS = 10  # archives of a set: others' stores take minutes for each
_NOTHING = 0.0005  # less is not told
_UNCONCERNED = 300  # questions of each set
_COLUMNS = ("R@1", "R@5", "R@10", "MRR", "all@5")
_WHOLE, _WORDS = "Threadkeep", "Threadkeep, words alone"


def main(args: argparse.Namespace) -> dict[str, Any]:
    sets = _sets(args.data, args.quick, args.sets)
    told: Callable[[str], None] = (lambda _: None) if args.json else partial(print, flush=True)
    result: dict[str, Any] = {"bench": "recall", "store": args.store, "sets": {}}
    with product("sqlite" if args.store == "all" else args.store) as ours_there:
        rankers: dict[str, Ranker] = {_WHOLE: ours_there.ranker, _WORDS: ours_there.by_words}
        others, result["left_out_peers"] = peers()
        for name, archives in sets.items():
            stores = others if not args.quick and len(archives) <= _MOST_FOR_PEERS else {}
            rows = {who: figures(ranker, archives) for who, ranker in {**rankers, **BASELINES, **stores}.items()}
            result["sets"][name] = rows
            told(f"{_block(name, rows)}\n{_against_words(rows)}")
        spent = result["ms_per_question"] = {
            "median": median(ours_there.spent) * 1e3,
            "p95": p95(ours_there.spent) * 1e3,
        }
    told(f"\nrecall of {DEPTH}, ms a question: median {spent['median']:.1f}, p95 {spent['p95']:.1f}")
    told("\n".join(f"{who}: left out, {why}" for who, why in result["left_out_peers"].items()))
    if not args.sets:
        left, follow = _left_out(sets), _follow_ups(args.data)
        result |= {"left_out": left, "follow_ups": follow}
        told(_block("LoCoMo, each talk left out", {_WHOLE: left}))
        rows = [(name, f"{value:.3f}") for name, value in follow.items()]
        told(table("Follow-ups (CAsT 2021)", ("", "R@5"), rows))
    return result


def _block(name: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    return table(name, ("", *_COLUMNS), [(who, *(f"{row[key]:.3f}" for key in _COLUMNS)) for who, row in rows.items()])


def _against_words(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Whether vectors drown what words alone find: by how much each figure falls, if any does."""
    fallen = {key: rows[_WORDS][key] - rows[_WHOLE][key] for key in _COLUMNS}
    worse = ", ".join(f"{key} by {loss:.3f}" for key, loss in fallen.items() if loss > _NOTHING)
    return f"the whole is below words alone in {worse}" if worse else "the whole is nowhere below words alone"


def _sets(data: Path, quick: bool, named: str | None = None) -> dict[str, list[Archive]]:
    wanted = {
        "LoCoMo, people chatting": lambda: locomo(data),
        "LongMemEval, user's turns": lambda: longmemeval(data),
        "LongMemEval, with long answers": lambda: long_answers(data),
        **{name: partial(_passages, data, name) for name in PASSAGES},
    }
    chosen = {name: load() for name, load in wanted.items() if not named or _is_named(name, named)}
    return {name: [_some(one) for one in archives[:2]] for name, archives in chosen.items()} if quick else chosen


def _is_named(name: str, named: str) -> bool:
    return any(part.strip().lower() in name.lower() for part in named.split(","))


def _passages(data: Path, name: str) -> list[Archive]:
    return [passages(data, name, without_marks)]


def _some(archive: Archive) -> Archive:
    return Archive(archive.name, archive.said, archive.asked[:10])


def ours(preset: Mapping[str, float] = DEFAULT, vectors: bool = True, spent: list[float] | None = None) -> Ranker:
    """Ranking fed from memory."""

    def indexed(archive: Archive) -> Callable[[str], Ranked]:
        index = MemoryIndex(archive.said, vectors_of([one.text for one in archive.said]) if vectors else None)

        def ask(text: str) -> Ranked:
            vector = vectors_of([text])[0] if vectors else None
            started = time.perf_counter()
            question = Question(text)
            hits = fused(question, index.evidence(question, vector), DEPTH, preset)
            if spent is not None:
                spent.append(time.perf_counter() - started)
            return [hit.message_id for hit in hits]

        return ask

    return indexed


def _left_out(sets: Mapping[str, Sequence[Archive]]) -> dict[str, float]:
    """Each talk ranked by weights that never saw it; the other kinds of sets take part in learning, as for ours."""
    names = list(DEFAULT)
    (talks, *others) = taught(list(sets.values()), names)
    rows: list[dict[str, float]] = []
    for left, archive in enumerate(next(iter(sets.values()))):
        kept = Group(talks.share, [one for number, one in enumerate(talks.archives) if number != left])
        row = figures(ours(learnt([kept, *others], names)), [archive])
        rows.extend([row] * int(row["questions"]))
    return {key: fmean(row[key] for row in rows) for key in _COLUMNS}


def _follow_ups(data: Path) -> dict[str, float]:
    """R@5 of CAsT 2021: as asked, with what the talk lends, and as a person rewrote the question."""
    said, asked = follow_ups(data)
    index = MemoryIndex(said, vectors_of([one.text for one in said]))
    ids = {one.text: one.id for one in said}

    def found(question: Question, gold: str) -> float:
        hits = fused(question, index.evidence(question, vectors_of([question.text])[0]), 5)
        return share([hit.message_id for hit in hits], frozenset({gold}), 5)

    def whole(text: str, earlier: Sequence[tuple[str, str]]) -> Question:
        given = [ids[passage] for _, passage in earlier]
        return enriched(text, [Asked(*one) for one in earlier], given=given)

    return {
        "as asked": fmean(found(Question(one.question), one.gold) for one in asked),
        "by rule": fmean(found(whole(one.question, one.earlier), one.gold) for one in asked),
        "by rule, without what was given": fmean(
            found(enriched(one.question, [Asked(question) for question, _ in one.earlier]), one.gold) for one in asked
        ),
        "rewritten by a person": fmean(found(Question(one.rewritten), one.gold) for one in asked),
        "whole questions after others of no concern, R@1": _unconcerned(data, follow=True),
        "the same asked first, R@1": _unconcerned(data, follow=False),
        "rewritten, then by rule": fmean(found(whole(one.rewritten, one.earlier), one.gold) for one in asked),
    }


def _unconcerned(data: Path, follow: bool) -> float:
    """Questions that speak for themselves, in four languages: what was asked before must not change what they find."""
    found: list[float] = []
    for name in ("XQuAD en", "XQuAD vi", "XQuAD zh", "PoQuAD"):
        archive = passages(data, name)
        index, chance = MemoryIndex(archive.said), random.Random(5)
        for asked in archive.asked[:_UNCONCERNED]:
            others = [Asked(one.question) for one in chance.sample(archive.asked, 3)]
            question = enriched(asked.question, others) if follow else Question(asked.question)
            hits = fused(question, index.evidence(question), 1)
            found.append(share([hit.message_id for hit in hits], asked.gold, 1))
    return fmean(found)
