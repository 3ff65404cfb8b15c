"""What speaks for each turn: legs (its words, its surroundings, its vector, its conversation) and small hints.

Every feature is between 0 and 1 and free of the set's size, so that one list of weights (`presets`) serves a chat of
ten turns and one of a hundred thousand. Legs are relative to the best turn at hand. What rests on neighbours is scaled
by how much turns lean on them (`surroundings.leaning`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.evidence import Evidence, Turn
from threadkeep.recall.normalise import fold
from threadkeep.recall.question import Question
from threadkeep.recall.speakers import speakers
from threadkeep.recall.surroundings import Fading, Neighbours, Surrounding, leaning
from threadkeep.recall.times import tells_number, tells_time

_HOW = Saturation()
_CLOSE, _NEAR, _AROUND = Fading(0.5, 2), Fading(0.7, 4), Fading(0.85, 8)
_BESIDE = Fading(0.6, 1)
_ALIKE_AROUND = Fading(0.8, 4)
_SHORT = 15  # terms; a shorter turn seldom says anything worth finding
_READ = 1_000  # characters of a turn that are searched for times and numbers

Column = list[float]


class Reading:
    """One question held against the evidence. Each property is a column: a value for each turn, in order."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question = question
        self.evidence = evidence
        self.turns: Sequence[Turn] = sorted(evidence.turns, key=lambda turn: turn.place)
        self._rows = {turn.place: row for row, turn in enumerate(self.turns)}
        self._speakers = speakers([turn.message.content for turn in self.turns])
        self._neighbours = Neighbours(self.turns, _AROUND.reach)
        self._leaning = leaning(evidence, self.turns, self._speakers)
        self._asks = [float("?" in turn.message.content or "？" in turn.message.content) for turn in self.turns]
        self.named = self._named()

    def _named(self) -> frozenset[str]:
        everyone = frozenset[str]().union(*self._speakers)
        return everyone.intersection(self.question.weights)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Of each term looked for: its rarity. Speakers' names are left to `speaker`, if anything else is asked."""
        statistics = self.evidence.statistics
        wanted = self.question.weights
        asked = {term: share for term, share in wanted.items() if term not in self.named and term in statistics.holding}
        return {
            term: share * rarity(statistics.holding[term], statistics.turns, _HOW.sharpness)
            for term, share in (asked or wanted).items()
            if statistics.holding.get(term)
        }

    @cached_property
    def own(self) -> Column:
        usual = max(self.evidence.statistics.mean_length, 1.0)
        return relative([score(turn.counts, self.weights, turn.length / usual, _HOW) for turn in self.turns])

    def with_neighbours(self, fading: Fading) -> Column:
        usual = max(self.evidence.statistics.mean_length, 1.0)
        around = self._neighbours.surroundings(frozenset(self.weights), fading)
        columns = zip(self.turns, around, self._leaning, strict=True)
        return relative([self._joined(*row, usual, fading) for row in columns])

    def _joined(self, turn: Turn, around: Surrounding, leans: float, usual: float, fading: Fading) -> float:
        counts: dict[str, float] = {term: leans * count for term, count in around.counts.items()}
        for term, count in turn.counts.items():
            counts[term] = counts.get(term, 0.0) + count
        length = (turn.length + leans * around.length) / (usual * (1 + leans * fading.total))
        return score(counts, self.weights, length, _HOW)

    @cached_property
    def close(self) -> Column:
        return self.with_neighbours(_CLOSE)

    @cached_property
    def near(self) -> Column:
        return self.with_neighbours(_NEAR)

    @cached_property
    def around(self) -> Column:
        return self.with_neighbours(_AROUND)

    @cached_property
    def covered(self) -> Column:
        """How much of what was asked the turn holds, by weight."""
        whole = sum(self.weights.values()) or 1.0
        return [sum(self.weights.get(term, 0.0) for term in turn.counts) / whole for turn in self.turns]

    @cached_property
    def covered_near(self) -> Column:
        whole = sum(self.weights.values()) or 1.0
        around = self._neighbours.surroundings(frozenset(self.weights), Fading(1.0, 2))
        return [
            sum(self.weights.get(term, 0.0) for term in {*turn.counts, *near.counts}) / whole
            for turn, near in zip(self.turns, around, strict=True)
        ]

    @cached_property
    def alike(self) -> Column:
        """The vector's leg: 0 for the least alike at hand, 1 for the most, less where the embedder knows no better."""
        known = self.evidence.cosines
        if not known or not self.question.is_english:
            return [0.0] * len(self.turns)
        least, most = min(known.values()), max(known.values())
        span = (most - least) or 1.0
        trust = self.question.is_english
        return [trust * (known.get(turn.message.id, least) - least) / span for turn in self.turns]

    def lean(self, column: Sequence[float]) -> Column:
        return [leans * value for leans, value in zip(self._leaning, column, strict=True)]

    def in_doubt(self, column: Sequence[float]) -> Column:
        """Counts where no turn holds all that was asked for."""
        doubt = 1 - max(self.covered, default=0.0)
        return [doubt * value for value in column]

    def before(self, column: Sequence[float]) -> Column:
        """Of each turn the value of the one before it."""
        rows = [self._rows.get(turn.place._replace(seq=turn.message.seq - 1)) for turn in self.turns]
        return [0.0 if row is None else column[row] for row in rows]

    def best_of_conversation(self, column: Sequence[float]) -> Column:
        """Where a conversation is one turn only, that turn is no evidence for itself."""
        best: dict[str, float] = {}
        for turn, value in zip(self.turns, column, strict=True):
            best[turn.conversation] = max(best.get(turn.conversation, 0.0), value)
        shapes = self.evidence.shapes
        return [best[turn.conversation] if shapes[turn.conversation].turns > 1 else 0.0 for turn in self.turns]

    @cached_property
    def conversation(self) -> Column:
        """The whole conversation as one text."""
        counts: dict[str, dict[str, float]] = {name: {} for name in self.evidence.shapes}
        for turn in self.turns:
            held = counts[turn.conversation]
            for term, count in turn.counts.items():
                held[term] = held.get(term, 0.0) + count
        talks = {name for name, shape in self.evidence.shapes.items() if shape.turns > 1}
        weights = {term: rarity(sum(term in counts[name] for name in talks), len(talks)) for term in self.weights}
        shapes = self.evidence.shapes
        usual = (sum(shapes[name].terms for name in talks) / len(talks)) if talks else 1.0
        scores = {name: score(counts[name], weights, shapes[name].terms / usual, _HOW) for name in talks}
        best = max(scores.values(), default=0.0) or 1.0
        return [scores.get(turn.conversation, 0.0) / best for turn in self.turns]

    @cached_property
    def speaker(self) -> Column:
        return [float(not self.named.isdisjoint(names)) for names in self._speakers]

    @cached_property
    def addressed(self) -> Column:
        """The one who is asked about is spoken to, or of."""
        return [
            float(any(turn.counts.get(name, 0) > (name in names) for name in self.named))
            for turn, names in zip(self.turns, self._speakers, strict=True)
        ]

    def told(self, asked: bool, tells: Callable[[str], bool]) -> Column:
        if not asked:
            return [0.0] * len(self.turns)
        return [float(tells(fold(turn.message.content[:_READ]))) for turn in self.turns]

    def said_by(self, asked: bool, role: str) -> Column:
        """Only where several kinds of speakers stand to choose from."""
        if not asked or len({turn.message.role for turn in self.turns}) < 2:
            return [0.0] * len(self.turns)
        return [float(turn.message.role == role) for turn in self.turns]

    def lengths(self) -> tuple[Column, Column]:
        usual = max(self.evidence.statistics.mean_length, 1.0)
        short = [max(0.0, 1 - turn.length / _SHORT) for turn in self.turns]
        return short, [min(1.0, math.log1p(turn.length / usual) / 3) for turn in self.turns]

    def columns(self) -> Mapping[str, Column]:
        short, long = self.lengths()
        question = self.question
        asked_before = [own * asks for own, asks in zip(self.own, self._asks, strict=True)]
        return {
            "own": self.own,
            "leaning own": self.lean(self.own),
            "close": self.close,
            "leaning close": self.lean(self.close),
            "near": self.near,
            "leaning near": self.lean(self.near),
            "around": self.around,
            "leaning around": self.lean(self.around),
            "previous": self.lean(self.before(self.own)),
            "answers": self.lean(self.before(asked_before)),
            "follows a question": self.lean(self.before(self._asks)),
            "asks": self.lean(self._asks),
            "short": short,
            "long": long,
            "leaning long": self.lean(long),
            "conversation": self.conversation,
            "leaning conversation": self.lean(self.conversation),
            "best of conversation": self.best_of_conversation(self.own),
            "leaning best of conversation": self.lean(self.best_of_conversation(self.own)),
            "covered": self.covered,
            "covered near": self.lean(self.covered_near),
            "speaker": self.speaker,
            "addressed": self.addressed,
            "alike": self.alike,
            "alike in doubt": self.in_doubt(self.alike),
            "leaning alike": self.lean(self.alike),
            "alike beside": self.lean(relative(self._neighbours.shared(self.alike, _BESIDE), self.question.is_english)),
            "alike around": self.lean(
                relative(self._neighbours.shared(self.alike, _ALIKE_AROUND), self.question.is_english)
            ),
            "alike in conversation": self.best_of_conversation(self.alike),
            "leaning alike in conversation": self.lean(self.best_of_conversation(self.alike)),
            "time": self.lean(self.told(question.asks_when, tells_time)),
            "number": self.lean(self.told(question.asks_how_many, tells_number)),
            "user's own words": self.said_by(question.is_about_me, "user"),
            "the other's words": self.said_by(question.is_about_you, "assistant"),
        }


def relative(column: Sequence[float], most: float = 1.0) -> Column:
    """To the best of them."""
    best = max(column, default=0.0)
    return [most * value / best for value in column] if best > 0 else [0.0] * len(column)
