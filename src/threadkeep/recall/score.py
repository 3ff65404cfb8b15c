"""Evidence to hits: features of each turn, and one weighted sum of them for every database and kind of conversation.

Every feature is between 0 and 1 and free of the set's size, so that one list of weights (`DEFAULT`) serves a chat of
ten turns and one of a hundred thousand. Legs (a turn's words, its neighbours, its vector, its conversation) are
relative to the best turn. What rests on neighbours is scaled by how much turns depend on them (`bm25.leaning`). A
long turn may hold every word of a question and be about something else, so its best stretch counts: where most of the
question's terms are close together.

The weights were learnt on open sets of three kinds at once (people chatting, short notes of one side, long written
answers), and judged on conversations left out; `python -m bench recall` shows what they are worth.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

from threadkeep.model import Hit
from threadkeep.ports.index import Evidence, Statistics, Turn
from threadkeep.recall.bm25 import Saturation, Words, leaning, rarity, relative, score
from threadkeep.recall.normalise import CJK, fold, is_written_without_spaces, split, stem, terms_of, words_apart
from threadkeep.recall.question import Question, has_number, has_time, nearness, other_numbers

_WIDE = 240  # characters of what is written with spaces, some forty words
_WIDE_WITHOUT_SPACES = 40
_SIDE_BY_SIDE = 0.25
_GAP = 2  # characters between words that stand side by side: no word fits there
# Python takes milliseconds to compile the second, for its many characters; so it is left to questions of both kinds.
_LETTER = r"[^\W_]"
_LETTER_AMONG_OTHERS = rf"[^\W_{CJK}]"


class Stretch(NamedTuple):
    share: float  # of the question, by weight, that is in it; 1 for all of it
    text: str  # folded, with what stands beside it


_NOWHERE = Stretch(0.0, "")


class Phrase:
    """What to look for: terms with their weights, and besides what two words say by standing side by side."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        words, characters = split(question)
        weight_of = {word: weights.get(stem(word), 0.0) for word in words}
        pairs = {f"{a}_{b}": _SIDE_BY_SIDE * (weight_of[a] + weight_of[b]) for a, b in pairwise(words)}
        self._weights = {**{pair: weight for pair, weight in pairs.items() if weight}, **weights}
        self._whole = sum(self._weights.values())
        self._width = _WIDE_WITHOUT_SPACES if characters else _WIDE
        self._beside = self._width // 2
        self._stems = {stem(word) for word in words}
        self._characters = {one for one in characters if len(one) == 1}

    def best_stretch(self, text: str) -> Stretch:
        folded = fold(text)
        found = list(self._occurrences(folded)) if self._whole else []
        best, where = 0.0, (0, 0)
        held = 0.0
        inside: dict[str, int] = {}
        first = 0
        for position, term in found:
            inside[term] = inside.get(term, 0) + 1
            if inside[term] == 1:
                held += self._weights[term]
            while found[first][0] <= position - self._width:
                gone = found[first][1]
                inside[gone] -= 1
                if not inside[gone]:
                    held -= self._weights[gone]
                first += 1
            if held > best:
                best, where = held, (found[first][0], position)
        if not best:
            return _NOWHERE
        return Stretch(best / self._whole, folded[max(0, where[0] - self._beside) : where[1] + self._beside])

    @cached_property
    def _in_text(self) -> re.Pattern[str]:
        return _pattern(self._stems, self._characters, _LETTER)

    @cached_property
    def _in_mixed_text(self) -> re.Pattern[str]:
        return _pattern(self._stems, self._characters, _LETTER_AMONG_OTHERS)

    def _occurrences(self, folded: str) -> Iterator[tuple[int, str]]:
        before, ended = "", -1
        pattern, searched = self._in_text, folded
        if self._stems and is_written_without_spaces(folded):
            pattern, searched = (self._in_mixed_text, folded) if self._characters else (pattern, words_apart(folded))
        for match in pattern.finditer(searched):
            piece, start = match[0], match.start()
            term = stem(piece) if match.lastgroup == "word" else piece
            if term in self._weights:
                yield start, term
            if match.lastgroup == "word" and start - ended <= _GAP and f"{before}_{piece}" in self._weights:
                yield start, f"{before}_{piece}"
            elif start == ended and before + piece in self._weights:
                yield start, before + piece
            before, ended = piece, match.end()


def _pattern(stems: set[str], characters: set[str], letter: str) -> re.Pattern[str]:
    """A word begins with its stem, so words worth a look are found without taking the text apart."""
    beginnings = "|".join(map(re.escape, sorted(stems, key=lambda one: (-len(one), one))))
    ways = [rf"(?<!{letter})(?P<word>(?:{beginnings}){letter}*)"] if stems else []
    ways += [f"[{re.escape(''.join(sorted(characters)))}]"] if characters else []
    return re.compile("|".join(ways) or "(?!)")


_HOW = Saturation()
_SHORT = 15  # terms; a shorter turn seldom says anything worth finding
_READ_CLOSELY = 30  # turns, those whose own words promise most
_READ_AS_WRITTEN = 60  # turns, if the question has marks
_READ_FOR_HINTS = 80  # turns, those whose surroundings do
_READ = 1_000  # characters of a turn that are searched for times and numbers
_CHATS = 0.9  # turns that lean so much are too short for words to stand apart in them
_SYLLABLES = 0.25  # the weight of syllables next to each other, whose pairs are terms already
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
        """Each term with its rarity. Speakers' names count in `speaker` only, if the question has other terms."""
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
        """Of the most promising long turns, the stretch that holds most of the question."""
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
    def number_there(self) -> Column:
        """The question wants a number, and one is in that stretch or next to it."""
        column = [*self._nothing]
        if self.question.wants_time or self.question.wants_number:
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

        The distance to the best cosine counts, so it does not matter how many messages the index returns.
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
        """The turn addresses or names the speaker in question."""
        if not self.named:
            return self._nothing
        return [
            float(any(turn.counts.get(name, 0) > (name in names) for name in self.named))
            for turn, names in zip(self.turns, self._speakers, strict=True)
        ]

    def hinted(self, wanted: bool, hints: Callable[[str], bool]) -> Column:
        if not wanted:
            return self._nothing
        column = [*self._nothing]
        for row in self._best(self.words.near, _READ_FOR_HINTS):
            column[row] = self._leaning[row] * hints(fold(self.turns[row].message.content[:_READ]))
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
        """In the conversation of the question, as far as the turn bears on it at all."""
        name = self.question.asked_in
        if name is None:
            return self._nothing
        return [bears * (turn.conversation == name) for bears, turn in zip(self._bears, self.turns, strict=True)]

    @cached_property
    def _bears(self) -> Column:
        return [max(pair) for pair in zip(self.words.near, self.alike, strict=True)]

    def written_by(self, wanted: bool, role: str) -> Column:
        """Only where several kinds of speakers stand to choose from."""
        if not wanted or len({turn.message.role for turn in self.turns}) < 2:
            return self._nothing
        return [float(turn.message.role == role) for turn in self.turns]

    def columns(self) -> Mapping[str, Column]:
        question, words = self.question, self.words
        usual = max(self.evidence.statistics.mean_length, 1.0)
        long = [min(1.0, math.log1p(turn.length / usual) / 3) for turn in self.turns]
        asked_before = [own * asks for own, asks in zip(words.own, self._asks, strict=True)]
        return {
            "near": words.near,
            "around": words.around,
            "previous": self.lean(words.neighbours.before(words.own)),
            "answers": self.lean(words.neighbours.before(asked_before)),
            "asks": self.lean(self._asks),
            "short": [max(0.0, 1 - turn.length / _SHORT) for turn in self.turns],
            "leaning long": self.lean(long),
            "covered": self.lean(words.covered),
            "together": self.together,
            "told there": self.number_there,
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
            "time": self.hinted(question.wants_time, has_time),
            "number": self.hinted(question.wants_number, has_number),
            "user's own words": self.written_by(question.is_about_me, "user"),
            "the other's words": self.written_by(question.is_about_you, "assistant"),
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
        found = [_WORD.findall(_composed(turn.message.content)) for turn in turns]
        held = [Counter(word for word in words if word in self._terms) for words in found]
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
    own, messages = reading.words.own, [turn.message for turn in reading.turns]
    if any(held > 0 for held in own):  # without a term of the question none scores above the best turn with one
        best = max(score for score, held in zip(scores, own, strict=True) if held > 0)
        scores = [score if held > 0 else min(score, best) for score, held in zip(scores, own, strict=True)]

    def order(row: int) -> tuple[float, bool, int, str]:
        return -round(scores[row], _DIGITS), own[row] <= 0, -messages[row].seq, messages[row].id

    ranks = _ranks({"words": own, "surroundings": reading.words.near, "vectors": reading.alike})
    hits: list[Hit] = []
    for row in sorted((row for row in range(len(scores)) if _bears(reading, row)), key=order)[:k]:
        parts = {name: preset[name] * column[row] for name, column in columns.items() if column[row]}
        hits.append(_hit(reading.turns[row], scores[row], parts, ranks(row)))
    return tuple(hits)


def _ranks(legs: Mapping[str, Column]) -> Callable[[int], dict[str, int]]:
    """Of a row, its rank in each leg that speaks for it: 1 is the best, and shared by equals."""
    ordered = {name: sorted(column) for name, column in legs.items()}
    return lambda row: {
        name: len(column) - bisect_right(ordered[name], column[row]) + 1 for name, column in legs.items() if column[row]
    }


def _bears(reading: Reading, row: int) -> bool:
    turn, words = reading.turns[row], reading.words
    cosine = reading.evidence.cosines.get(turn.message.id, 0.0) if reading.alike[row] else 0.0
    if words.own[row] > 0 or cosine >= _ALIKE:
        return True
    return words.near[row] >= _BESIDE and turn.length >= _SAYS_SOMETHING


def _hit(turn: Turn, score: float, parts: Mapping[str, float], ranks: Mapping[str, int]) -> Hit:
    """`why` says the terms it holds, its rank in each leg, and the features that moved it most, by how much."""
    most = sorted(parts, key=lambda name: -abs(parts[name]))[:_TOLD]
    because = {name: round(parts[name], 3) for name in most}
    why = {"terms": sorted(turn.counts), "ranks": dict(ranks), "because": because}
    one = turn.message
    return Hit(one.id, turn.conversation, one.seq, one.role, one.content, one.ts, score, why, one.origin)
