"""Precision, recall, F1 and leak, per type.

A gold span is found if spans of its own type cover every letter and digit of it. It leaks unless spans of any type do.
A predicted span is right if at least half of it lies in gold of its type.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.redaction_sets import Case

Spans = list[tuple[int, int, str]]


@dataclass(slots=True)
class Tally:
    gold: int = 0
    found: int = 0
    leaked: int = 0
    predicted: int = 0
    right: int = 0
    misses: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.gold if self.gold else 1.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def leak(self) -> float:
        return self.leaked / self.gold if self.gold else 0.0

    def figures(self) -> dict[str, float]:
        return {
            "gold": self.gold,
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
            "leak": round(self.leak, 4),
        }


def score(cases: Iterable[Case], find: Callable[[str, str], Spans]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = defaultdict(Tally)
    for case in cases:
        predicted = find(case.text, case.language)
        for gold in case.gold:
            _count_gold(tallies[gold[2]], case.text, gold, predicted)
        for span in predicted:
            _count_predicted(tallies[span[2]], case, span)
    return dict(tallies)


def _count_gold(tally: Tally, text: str, gold: tuple[int, int, str], predicted: Spans) -> None:
    start, end, kind = gold
    tally.gold += 1
    tally.found += covered(text, start, end, [span for span in predicted if span[2] == kind])
    if not covered(text, start, end, predicted):
        tally.leaked += 1
        tally.misses.append(f"{text[max(0, start - 30) : start]}⟦{text[start:end]}⟧{text[end : end + 20]}")


def covered(text: str, start: int, end: int, spans: Spans) -> bool:
    """Return whether spans of any type cover every letter and digit of `text[start:end]`."""
    inside = [(left, right) for left, right, _ in spans if left < end and right > start]
    return all(
        any(left <= index < right for left, right in inside) for index in range(start, end) if text[index].isalnum()
    )


def _count_predicted(tally: Tally, case: Case, span: tuple[int, int, str]) -> None:
    start, end, kind = span
    tally.predicted += 1
    shared = sum(max(0, min(end, right) - max(start, left)) for left, right, gold in case.gold if gold == kind)
    if 2 * shared >= end - start:
        tally.right += 1
    else:
        text = case.text
        tally.alarms.append(f"{text[max(0, start - 30) : start]}⟦{text[start:end]}⟧{text[end : end + 20]}")
