"""Features to hits: one weighted sum, with the same weights for every database and every kind of conversation.

The weights were learnt on open sets of three kinds at once (people chatting, short notes of one side, long written
answers), and judged on conversations left out; `python -m bench recall` shows what they are worth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from threadkeep.model import Hit
from threadkeep.ports.index import Evidence, Turn
from threadkeep.recall.features import Column, Reading
from threadkeep.recall.question import Question

DEFAULT: dict[str, float] = {
    # legs
    "near": 2.12,
    "around": 2.22,
    "covered": 1.61,
    "together": 3.6,
    "told there": 1.5,
    "as written": 2.0,
    "alike": 3.0,
    "alike in conversation": 1.59,
    # who said it, and when
    "user's own words": 5.0,
    "the other's words": 0.71,
    "speaker": 0.79,
    "addressed": -0.39,
    "dated": 5.06,
    # same conversation or not, and age: set by hand, enough to choose between equal answers
    "fresh": 0.2,
    "same conversation": 0.5,
    # what kind of turn it is
    "answers": 3.08,
    "previous": -1.68,
    "time": 2.11,
    "number": 1.96,
    "asks": -0.76,
    "short": -0.93,
    "leaning long": 5.2,
    "given before": -2.0,
}


_TOLD = 4  # reasons a hit gives
_ALIKE = 0.4  # a cosine that speaks for a turn by itself
_BESIDE = 0.3  # of the best turn's worth, by neighbours alone
_SAYS_SOMETHING = 6  # terms; "Noted." is no answer
_DIGITS = 9  # of a score; what follows is chance


def fused(question: Question, evidence: Evidence, k: int, preset: Mapping[str, float] = DEFAULT) -> tuple[Hit, ...]:
    """Best first; equal scores by newest `seq`, then id, so that the order never depends on the store.

    A hit holds a term of the question, is alike by its vector, or is next to such a turn and long enough to say
    something: in a chat, the answer to a question seldom repeats its words.
    """
    reading = Reading(question, evidence)
    columns = {name: column for name, column in reading.columns().items() if name in preset and any(column)}
    scores = [0.0] * len(reading.turns)
    for name, column in columns.items():
        weight = preset[name]
        scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
    scores = _behind_turns_with_terms(reading, scores)
    rows = sorted((row for row in range(len(scores)) if _bears(reading, row)), key=_order(reading, scores))
    ranks = _ranks({"words": reading.words.own, "surroundings": reading.words.near, "vectors": reading.alike})
    return tuple(_hit(reading.turns[row], row, scores[row], columns, preset, ranks(row)) for row in rows[:k])


def _ranks(legs: Mapping[str, Column]) -> Callable[[int], dict[str, int]]:
    """Of a row, its rank in each leg that speaks for it: 1 is the best, and shared by equals."""
    ordered = {name: sorted(column) for name, column in legs.items()}
    return lambda row: {
        name: len(column) - bisect_right(ordered[name], column[row]) + 1 for name, column in legs.items() if column[row]
    }


def _behind_turns_with_terms(reading: Reading, scores: list[float]) -> list[float]:
    """A turn without a term of the question never scores above the best turn with one, however near or alike it is."""
    own = reading.words.own
    best = max((score for score, held in zip(scores, own, strict=True) if held > 0), default=None)
    if best is None:
        return scores
    return [score if held > 0 else min(score, best) for score, held in zip(scores, own, strict=True)]


def _order(reading: Reading, scores: Sequence[float]) -> Callable[[int], tuple[float, bool, int, str]]:
    messages, own = [turn.message for turn in reading.turns], reading.words.own
    return lambda row: (-round(scores[row], _DIGITS), own[row] <= 0, -messages[row].seq, messages[row].id)


def _bears(reading: Reading, row: int) -> bool:
    turn, words = reading.turns[row], reading.words
    if words.own[row] > 0 or _cosine(reading, row) >= _ALIKE:
        return True
    return words.near[row] >= _BESIDE and turn.length >= _SAYS_SOMETHING


def _cosine(reading: Reading, row: int) -> float:
    return reading.evidence.cosines.get(reading.turns[row].message.id, 0.0) if reading.alike[row] else 0.0


def _hit(
    turn: Turn,
    row: int,
    score: float,
    columns: Mapping[str, Column],
    preset: Mapping[str, float],
    ranks: Mapping[str, int],
) -> Hit:
    parts = {name: preset[name] * column[row] for name, column in columns.items() if column[row]}
    message = turn.message
    why = _why(turn, parts, ranks)
    return Hit(
        message.id,
        turn.conversation,
        message.seq,
        message.role,
        message.content,
        message.ts,
        score,
        why,
        message.origin,
    )


def _why(turn: Turn, parts: Mapping[str, float], ranks: Mapping[str, int]) -> dict[str, Any]:
    """The terms it holds, its rank in each leg, and the features that moved it most, by how much."""
    most = sorted(parts, key=lambda name: -abs(parts[name]))[:_TOLD]
    because = {name: round(parts[name], 3) for name in most}
    return {"terms": sorted(turn.counts), "ranks": dict(ranks), "because": because}
