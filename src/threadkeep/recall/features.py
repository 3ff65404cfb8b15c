"""What speaks for each turn: legs (its words, its surroundings, its vector, its conversation) and small hints.

Every feature is between 0 and 1 and free of the set's size, so that one list of weights (`presets`) serves a chat of
ten turns and one of a hundred thousand. Legs are relative to the best turn at hand. What rests on neighbours is scaled
by how much turns lean on them (`surroundings.leaning`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.dates import nearness
from threadkeep.recall.evidence import Evidence, Turn
from threadkeep.recall.normalise import fold, words_of
from threadkeep.recall.question import Question
from threadkeep.recall.speakers import speakers
from threadkeep.recall.stem import stem
from threadkeep.recall.stretch import share_in_one_stretch
from threadkeep.recall.surroundings import Fading, Neighbours, leaning
from threadkeep.recall.times import tells_number, tells_time

_HOW = Saturation()
_NEAR, _AROUND, _BESIDE = Fading(0.7, 4), Fading(0.85, 8), Fading(1.0, 2)
_SHORT = 15  # terms; a shorter turn seldom says anything worth finding
_READ_CLOSELY = 30  # turns
_SIDE_BY_SIDE = 0.25
# What standing together tells, by script: much of characters, little of syllables, whose pairs are terms already.
_TOGETHER = {"characters": 1.2, "syllables": 0.1, "words": 0.4}
_SPREAD = 0.7  # of cosines between the most alike text and one of quite another kind
_READ = 1_000  # characters of a turn that are searched for times and numbers

Column = list[float]


class Reading:
    """One question held against the evidence. Each property is a column: a value for each turn, in order."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question = question
        self.evidence = evidence
        self.turns: Sequence[Turn] = sorted(evidence.turns, key=lambda turn: (turn.conversation, turn.message.seq))
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
        around = self._neighbours.counts(self.weights, fading)
        return relative(
            [
                self._joined(row, held, usual, fading) if held or turn.counts else 0.0
                for row, (turn, held) in enumerate(zip(self.turns, around, strict=True))
            ]
        )

    def _joined(self, row: int, around: Mapping[str, float], usual: float, fading: Fading) -> float:
        turn, leans = self.turns[row], self._leaning[row]
        counts = {term: leans * count for term, count in around.items()}
        for term, count in turn.counts.items():
            counts[term] = counts.get(term, 0.0) + count
        whole = turn.length + leans * self._neighbours.length(row, fading)
        return score(counts, self.weights, whole / (usual * (1 + leans * fading.total)), _HOW)

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
    def _phrases(self) -> dict[str, float]:
        """The terms, and besides what two words of the question say by standing side by side."""
        words = words_of(self.question.text)
        told = {word: self.weights.get(stem(word), 0.0) for word in words}
        pairs = {f"{a}_{b}": _SIDE_BY_SIDE * (told[a] + told[b]) for a, b in pairwise(words)}
        return {**{pair: weight for pair, weight in pairs.items() if weight}, **self.weights}

    @cached_property
    def together(self) -> Column:
        """How much of it stands in one stretch of the turn, where turns are long. Only the best are read so closely."""
        column = [0.0] * len(self.turns)
        trust = _TOGETHER[self.question.script]
        for row in self._most_promising:
            share = share_in_one_stretch(self.turns[row].message.content, self._phrases)
            column[row] = trust * (1 - self._leaning[row]) * share
        return column

    @cached_property
    def _most_promising(self) -> list[int]:
        return sorted(range(len(self.turns)), key=lambda row: -self.own[row])[:_READ_CLOSELY]

    @cached_property
    def covered_near(self) -> Column:
        whole = sum(self.weights.values()) or 1.0
        around = self._neighbours.counts(self.weights, _BESIDE)
        return [
            sum(self.weights.get(term, 0.0) for term in {*turn.counts, *near}) / whole if near else own
            for turn, near, own in zip(self.turns, around, self.covered, strict=True)
        ]

    @cached_property
    def alike(self) -> Column:
        """The vector's leg: 1 for the most alike. Less where the embedder does not know the language.

        How far behind the others are is told by the cosines themselves, so it does not matter how many the index names.
        """
        known = self.evidence.cosines
        if not known or not self.question.is_english:
            return [0.0] * len(self.turns)
        least, most = min(known.values()), max(known.values())
        trust = self.question.is_english
        behind = (most - known.get(turn.message.id, least) for turn in self.turns)
        return [trust * max(0.0, 1 - distance / _SPREAD) for distance in behind]

    def lean(self, column: Sequence[float]) -> Column:
        return [leans * value for leans, value in zip(self._leaning, column, strict=True)]

    def before(self, column: Sequence[float]) -> Column:
        """Of each turn the value of the one before it."""
        return [0.0 if row is None else column[row] for row in self._neighbours.before()]

    def best_of_conversation(self, column: Sequence[float]) -> Column:
        """Where a conversation is one turn only, that turn is no evidence for itself."""
        best: dict[str, float] = {}
        for turn, value in zip(self.turns, column, strict=True):
            best[turn.conversation] = max(best.get(turn.conversation, 0.0), value)
        shapes = self.evidence.shapes
        return [best[turn.conversation] if shapes[turn.conversation].turns > 1 else 0.0 for turn in self.turns]

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

    @cached_property
    def dated(self) -> Column:
        """Said at a time that the question names."""
        dates = self.question.dates
        return [nearness(turn.message.ts, dates) for turn in self.turns] if dates else [0.0] * len(self.turns)

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
            "near": self.near,
            "around": self.around,
            "previous": self.lean(self.before(self.own)),
            "answers": self.lean(self.before(asked_before)),
            "asks": self.lean(self._asks),
            "short": short,
            "leaning long": self.lean(long),
            "covered": self.covered,
            "covered near": self.lean(self.covered_near),
            "together": self.together,
            "speaker": self.speaker,
            "addressed": self.addressed,
            "alike": self.alike,
            "alike in conversation": self.best_of_conversation(self.alike),
            "given before": [float(turn.message.id in question.given) for turn in self.turns],
            "dated": self.dated,
            "time": self.lean(self.told(question.asks_when, tells_time)),
            "number": self.lean(self.told(question.asks_how_many, tells_number)),
            "user's own words": self.said_by(question.is_about_me, "user"),
            "the other's words": self.said_by(question.is_about_you, "assistant"),
        }


def relative(column: Sequence[float], most: float = 1.0) -> Column:
    """To the best of them."""
    best = max(column, default=0.0)
    return [most * value / best for value in column] if best > 0 else [0.0] * len(column)
