"""What speaks for each turn: legs (its words, its surroundings, its vector, its conversation) and small hints.

Every feature is between 0 and 1 and free of the set's size, so that one list of weights (`presets`) serves a chat of
ten turns and one of a hundred thousand. Legs are relative to the best turn at hand. What rests on neighbours is scaled
by how much turns lean on them (`surroundings.leaning`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.dates import nearness
from threadkeep.recall.evidence import Evidence, Statistics, Turn
from threadkeep.recall.normalise import CJK, fold, terms_of
from threadkeep.recall.question import Question
from threadkeep.recall.stem import stem
from threadkeep.recall.stretch import Phrase, Stretch
from threadkeep.recall.surroundings import leaning
from threadkeep.recall.times import other_numbers, tells_number, tells_time
from threadkeep.recall.words import Words, relative

_HOW = Saturation()
_SHORT = 15  # terms; a shorter turn seldom says anything worth finding
_READ_CLOSELY = 30  # turns, those whose own words promise most
_READ_AS_WRITTEN = 60  # turns, if the question has marks
_READ_FOR_HINTS = 80  # turns, those whose surroundings do
_READ = 1_000  # characters of a turn that are searched for times and numbers
_CHATS = 0.9  # turns that lean so much are too short for words to stand apart in them
_SYLLABLES = 0.25  # how much standing together tells of syllables, whose pairs are terms already
_MONTH = 30  # days
_SPREAD = 0.7  # of cosines between the most alike text and one of quite another kind

Column = Sequence[float]


class Reading:
    """One question held against the evidence. Each property is a column: a value for each turn, in order."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question = question
        self.evidence = evidence
        self.turns: Sequence[Turn] = sorted(evidence.turns, key=lambda turn: (turn.conversation, turn.message.seq))
        self._nothing = [0.0] * len(self.turns)
        self._speakers = speakers([turn.message.content for turn in self.turns])
        self.named = frozenset[str]().union(*set(self._speakers)).intersection(question.weights)
        self._leaning = leaning(evidence.shapes, self.turns, self._speakers)
        self.words = Words(self.turns, self._weights(), self._leaning, evidence.statistics.mean_length, _HOW)
        self._asks = [float("?" in turn.message.content or "？" in turn.message.content) for turn in self.turns]

    def _weights(self) -> dict[str, float]:
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
    def _stretches(self) -> Mapping[int, Stretch]:
        """Of long turns that promise most the place where most of what was asked stands together."""
        own, phrase = self.words.own, Phrase(self.question.text, self.words.weights)
        rows = (row for row in self._best(own, _READ_CLOSELY) if self._leaning[row] < _CHATS)
        return {row: phrase.best_stretch(self.turns[row].message.content) for row in rows}

    def _best(self, column: Column, most: int) -> list[int]:
        return nlargest(most, (row for row, value in enumerate(column) if value), key=column.__getitem__)

    @cached_property
    def together(self) -> Column:
        """How much of it stands in one stretch of the turn."""
        trust = _SYLLABLES if self.question.is_in_syllables else 1.0
        column = [*self._nothing]
        for row, stretch in self._stretches.items():
            column[row] = trust * (1 - self._leaning[row]) * stretch.share
        return column

    @cached_property
    def told_there(self) -> Column:
        """A number stands in that stretch or beside it, and one was asked for."""
        column = [*self._nothing]
        if self.question.asks_when or self.question.asks_how_many:
            for row, stretch in self._stretches.items():
                if other_numbers(stretch.text, self.question.folded):
                    column[row] = (1 - self._leaning[row]) * stretch.share
        return column

    @cached_property
    def as_written(self) -> Column:
        asked, column = AsWritten(self.question.text, self.words.weights), [*self._nothing]
        if asked:
            rows = self._best(self.words.own, _READ_AS_WRITTEN)
            worth = relative(asked.worth([self.turns[row] for row in rows], self.evidence.statistics))
            for row, value in zip(rows, worth, strict=True):
                column[row] = value
        return column

    @cached_property
    def alike(self) -> Column:
        """The vector's leg: 1 for the most alike. Less where the embedder does not know the language.

        How far behind the others are is told by the cosines themselves, so it does not matter how many the index names.
        """
        known, trust = self.evidence.cosines, self.question.trust_in(self.evidence.model)
        if not known or not trust:
            return self._nothing
        least, most = min(known.values()), max(known.values())
        behind = (most - known.get(turn.message.id, least) for turn in self.turns)
        return [trust * max(0.0, 1 - distance / _SPREAD) for distance in behind]

    def lean(self, column: Column) -> Column:
        return [leans * value for leans, value in zip(self._leaning, column, strict=True)]

    def best_of_conversation(self, column: Column) -> Column:
        """Where a conversation is one turn only, that turn is no evidence for itself."""
        best: dict[str, float] = {}
        for turn, value in zip(self.turns, column, strict=True):
            if value > best.get(turn.conversation, 0.0):
                best[turn.conversation] = value
        several = {name: best.get(name, 0.0) for name, shape in self.evidence.shapes.items() if shape.turns > 1}
        return [several.get(turn.conversation, 0.0) for turn in self.turns]

    @cached_property
    def speaker(self) -> Column:
        if not self.named:
            return self._nothing
        return [float(not self.named.isdisjoint(names)) for names in self._speakers]

    @cached_property
    def addressed(self) -> Column:
        """The one who is asked about is spoken to, or of."""
        if not self.named:
            return self._nothing
        return [
            float(any(turn.counts.get(name, 0) > (name in names) for name in self.named))
            for turn, names in zip(self.turns, self._speakers, strict=True)
        ]

    def told(self, asked: bool, tells: Callable[[str], bool]) -> Column:
        if not asked:
            return self._nothing
        column = [*self._nothing]
        for row in self._best(self.words.near, _READ_FOR_HINTS):
            column[row] = self._leaning[row] * tells(fold(self.turns[row].message.content[:_READ]))
        return column

    @cached_property
    def dated(self) -> Column:
        """Said at a time that the question names."""
        dates = self.question.dates
        if not dates:
            return self._nothing
        days = {turn.message.ts.date(): nearness(turn.message.ts, dates) for turn in self.turns}
        return [days[turn.message.ts.date()] for turn in self.turns]

    @cached_property
    def fresh(self) -> Column:
        """Said later than others at hand, as far as the turn bears on the question at all: half of it a month on."""
        now = self.question.asked_at
        if now is None:
            return self._nothing
        ages = [max(0, (now - turn.message.ts).days) for turn in self.turns]  # whole: seconds would move every score
        left = [0.5 ** (age / _MONTH) for age in ages]
        least = min(left, default=0.0)
        return [bears * (share - least) for bears, share in zip(self._bears, left, strict=True)]

    @cached_property
    def same_conversation(self) -> Column:
        """Said where the question is asked, as far as the turn bears on it at all."""
        name = self.question.asked_in
        if name is None:
            return self._nothing
        return [bears * (turn.conversation == name) for bears, turn in zip(self._bears, self.turns, strict=True)]

    @cached_property
    def _bears(self) -> Column:
        return [max(pair) for pair in zip(self.words.near, self.alike, strict=True)]

    def said_by(self, asked: bool, role: str) -> Column:
        """Only where several kinds of speakers stand to choose from."""
        if not asked or len({turn.message.role for turn in self.turns}) < 2:
            return self._nothing
        return [float(turn.message.role == role) for turn in self.turns]

    def _long(self) -> Column:
        usual = max(self.evidence.statistics.mean_length, 1.0)
        return [min(1.0, math.log1p(turn.length / usual) / 3) for turn in self.turns]

    def columns(self) -> Mapping[str, Column]:
        question, words = self.question, self.words
        asked_before = [own * asks for own, asks in zip(words.own, self._asks, strict=True)]
        return {
            "near": words.near,
            "around": words.around,
            "previous": self.lean(words.line.before(words.own)),
            "answers": self.lean(words.line.before(asked_before)),
            "asks": self.lean(self._asks),
            "short": [max(0.0, 1 - turn.length / _SHORT) for turn in self.turns],
            "leaning long": self.lean(self._long()),
            "covered": self.lean(words.covered),
            "together": self.together,
            "told there": self.told_there,
            "as written": self.as_written,
            "speaker": self.speaker,
            "addressed": self.addressed,
            "alike": self.alike,
            "alike in conversation": self.best_of_conversation(self.alike),
            "given before": [float(turn.message.id in question.given) for turn in self.turns]
            if question.given
            else self._nothing,
            "dated": self.dated,
            "fresh": self.fresh,
            "same conversation": self.same_conversation,
            "time": self.told(question.asks_when, tells_time),
            "number": self.told(question.asks_how_many, tells_number),
            "user's own words": self.said_by(question.is_about_me, "user"),
            "the other's words": self.said_by(question.is_about_you, "assistant"),
        }


_HOW_WRITTEN = Saturation(sharpness=1.0)  # what is rare by its marks alone should not outweigh all the rest
_WORD = re.compile(rf"[^\W_{CJK}]+")


class AsWritten:
    """The words of a question that has marks, each with the term it is found by; none of a question without."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        words = dict.fromkeys(_WORD.findall(_composed(question))) if not question.isascii() else {}
        folded = {word: fold(word) for word in words}
        terms = {word: stem(plain) for word, plain in folded.items()}
        marked = any(plain != word for word, plain in folded.items())
        self._terms = {word: term for word, term in terms.items() if term in weights} if marked else {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def worth(self, turns: Sequence[Turn], statistics: Statistics) -> list[float]:
        """Of each turn, as BM25 weighs words."""
        held = [self._held(turn) for turn in turns]
        having = Counter(word for words in held for word in words)
        folded = Counter(term for turn in turns for term in turn.counts)
        weights = {
            word: rarity(
                statistics.holding.get(term, 0) * having[word] / max(1, folded[term]),
                statistics.turns,
                _HOW_WRITTEN.sharpness,
            )
            for word, term in self._terms.items()
        }
        usual = max(1.0, statistics.mean_length)
        rows = zip(turns, held, strict=True)
        return [score(words.items(), weights, turn.length / usual, _HOW_WRITTEN) for turn, words in rows]

    def _held(self, turn: Turn) -> Counter[str]:
        return Counter(word for word in _WORD.findall(_composed(turn.message.content)) if word in self._terms)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


_NAME = re.compile(r"([^\W\d_][\w.' -]{0,30}?)[:：]\s")
_AT_LEAST = 3  # turns; "Note: …" begins one or two


def speakers(contents: Sequence[str]) -> list[frozenset[str]]:
    """The terms of the name each begins with, none where it is no speaker's."""
    found = [_NAME.match(content) for content in contents]
    names = [match.group(1) if match else "" for match in found]
    often = Counter(names)
    terms = {name: frozenset(terms_of(name)) for name, times in often.items() if name and times >= _AT_LEAST}
    return [terms.get(name, frozenset()) for name in names]
