"""Weights for the features, learnt from questions whose answers are known; and what they are worth on others.

One weighted sum, its weights at least zero (for what can only speak against a turn, at most), so that a leg that does
not help one set is not turned against it. The loss is that of choosing among the turns at hand by softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.recall_memory import MemoryIndex
from bench.recall_sets import Archive
from bench.recall_vectors import vectors_of
from threadkeep.recall.question import Question
from threadkeep.recall.score import Reading

AGAINST = {"previous", "asks", "short", "addressed", "given before"}
# Nothing teaches these, save the second: of it the sets at hand would have more than others may bear.
BY_HAND = {"given before": -2.0, "user's own words": 5.0, "fresh": 0.2, "same conversation": 0.5}
RAISED = {"alike": 1.4}  # the loss looks at the first place; further down vectors find what words do not
_SHARES = (1.0, 0.7, 0.6, 0.5)
_PASSAGES_EVERY = 4
_STEPS = 400
_RATE = 0.05
_SIMPLE = 1e-3  # how much small weights are preferred


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question: a row of features for each turn, and which of them are gold."""

    features: Any
    gold: Any


def lessons(archive: Archive, names: Sequence[str]) -> list[Lesson]:
    index = MemoryIndex(archive.said, vectors_of([one.text for one in archive.said]))
    found: list[Lesson] = []
    for asked in archive.asked:
        question = Question(asked.question)
        reading = Reading(question, index.evidence(question, vectors_of([asked.question])[0]))
        rows = [row for row, turn in enumerate(reading.turns) if turn.message.id in asked.gold]
        if rows:
            columns = reading.columns()
            found.append(Lesson(np.array([columns[name] for name in names], np.float32).T, np.array(rows)))
    return found


@dataclass(frozen=True, slots=True)
class Group:
    """Lessons of one kind of set, and how much the kind counts, however many lessons there are."""

    share: float
    archives: list[list[Lesson]]


def taught(sets: Sequence[Sequence[Archive]], names: Sequence[str]) -> list[Group]:
    """Chats, notes of one side, long answers, then passages; of passages a part only, they would take long."""
    chats, notes, long, *passages = sets
    some = [Archive(one.name, one.said, one.asked[::_PASSAGES_EVERY]) for archives in passages for one in archives]
    shares = zip(_SHARES, (chats, notes, long, some), strict=True)
    return [Group(share, [lessons(archive, names) for archive in archives]) for share, archives in shares]


def learnt(groups: Sequence[Group], names: Sequence[str]) -> dict[str, float]:
    told: list[tuple[Lesson, float]] = []
    for group in groups:
        all_of_it = [lesson for archive in group.archives for lesson in archive]
        told.extend((lesson, group.share / len(all_of_it)) for lesson in all_of_it)
    whole = sum(weight for _, weight in told)
    features = np.concatenate([lesson.features for lesson, _ in told])
    spread = features.std(axis=0) + 1e-9
    problem = _Problem(features / spread, [(lesson, weight / whole) for lesson, weight in told])
    against = np.array([name in AGAINST for name in names])
    weights = _descended(problem, against)
    found = zip(names, weights / spread, strict=True)
    return {name: BY_HAND.get(name, RAISED.get(name, 1.0) * float(weight)) for name, weight in found}


class _Problem:
    def __init__(self, features: Any, told: Sequence[tuple[Lesson, float]]) -> None:
        sizes = [len(lesson.features) for lesson, _ in told]
        self.features = features
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.lesson_of = np.repeat(np.arange(len(told)), sizes)
        self.shares = np.array([weight for _, weight in told])
        self.wanted = np.zeros(len(features))
        for start, (lesson, weight) in zip(self.starts, told, strict=True):
            self.wanted[start + lesson.gold] = weight / len(lesson.gold)

    def gradient(self, weights: Any) -> Any:
        scores = self.features @ weights
        scores -= np.maximum.reduceat(scores, self.starts)[self.lesson_of]
        chances = np.exp(scores)
        chances /= np.add.reduceat(chances, self.starts)[self.lesson_of]
        return self.features.T @ (chances * self.shares[self.lesson_of] - self.wanted) + 2 * _SIMPLE * weights


def _descended(problem: _Problem, against: Any) -> Any:
    """Adam, put back at each step to the side of zero where a weight belongs."""
    weights = np.zeros(len(against))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        slope = problem.gradient(weights)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        rate = _RATE * (1 - step / (_STEPS + 1))
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
        weights = np.where(against, np.minimum(weights, 0), np.maximum(weights, 0))
    return weights
