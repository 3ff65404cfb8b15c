"""One user's turns in memory, answering what an index backend must: statistics, postings, turns, shapes, cosines.

It stands for a database here, so that ranking is measured apart from any; the work it hands on is bounded alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from threadkeep.index.terms import worth_reading
from threadkeep.model import Message, Role
from threadkeep.ports.index import Evidence, Position, Posting, Shape, Statistics, Turn
from threadkeep.recall.candidates import MOST_POSTINGS, REACH_OF_NEAREST, promising, with_neighbours
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.question import Question

_NEAREST = 200  # messages that the vectors' leg names
_OF_THEM = 50  # that are candidates by it alone
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Said:
    id: str
    conversation: str
    text: str
    role: Role = "user"
    ts: datetime = _WHEN


class MemoryIndex:
    def __init__(self, said: Sequence[Said], vectors: Any = None, terms: Sequence[Sequence[str]] | None = None) -> None:
        seqs: Counter[str] = Counter()
        self.messages: dict[Position, Message] = {}
        self._counts: dict[Position, Counter[str]] = {}
        self._lengths: dict[Position, int] = {}
        self._postings: dict[str, list[tuple[Position, int]]] = defaultdict(list)
        totals: Counter[str] = Counter()
        for one, held in zip(said, terms or [terms_of(one.text) for one in said], strict=True):
            seqs[one.conversation] += 1
            place = Position(one.conversation, seqs[one.conversation])
            self.messages[place] = Message(
                id=one.id, seq=place.seq, role=one.role, content=one.text, ts=one.ts, language=None
            )
            counts = self._counts[place] = Counter(held)
            self._lengths[place] = len(held)
            totals[one.conversation] += len(held)
            for term, count in counts.items():
                self._postings[term].append((place, count))
        self._shapes = {name: Shape(seqs[name], totals[name]) for name in seqs}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths))
        self.places = list(self.messages)
        self.vectors = vectors

    def statistics(self, weights: Mapping[str, float]) -> Statistics:
        holding = {term: len(self._postings[term]) for term in weights if term in self._postings}
        return Statistics(len(self.messages), self._mean, holding)

    def evidence(self, question: Question, vector: Any = None) -> Evidence:
        statistics = self.statistics(question.weights)
        postings = [
            Posting(term, place, count, self._lengths[place])
            for term in worth_reading(statistics, MOST_POSTINGS)
            for place, count in self._postings[term]
        ]
        found = promising(postings, statistics, self._shapes, question.weights)
        cosines = self._cosines(vector)
        nearest = sorted(cosines, key=lambda place: -cosines[place])[:_OF_THEM]
        around = with_neighbours(found) | with_neighbours(nearest, REACH_OF_NEAREST)
        read = [place for place in around if place in self.messages]
        turns = [self._turn(place, question.weights) for place in read]
        shapes = {place.conversation: self._shapes[place.conversation] for place in read}
        by_id = {self.messages[place].id: cosine for place, cosine in cosines.items()}
        return Evidence(statistics, turns, shapes, by_id)

    def _turn(self, place: Position, weights: Mapping[str, float]) -> Turn:
        counts = self._counts[place]
        held = {term: counts[term] for term in weights if term in counts}
        return Turn(self.messages[place], place.conversation, self._lengths[place], held)

    def _cosines(self, vector: Any) -> dict[Position, float]:
        if vector is None or self.vectors is None:
            return {}
        cosines = self.vectors @ vector
        order = np.argsort(-cosines, kind="stable")[:_NEAREST]
        return {self.places[row]: float(cosines[row]) for row in order}
