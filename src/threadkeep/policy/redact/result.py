"""What a redaction returns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Span(NamedTuple):
    """A masked stretch, in offsets of the text as it came in."""

    start: int
    end: int
    type: str


class Finding(NamedTuple):
    """A span and the rule that made it. Never holds the value itself, so it may be logged."""

    span: Span
    type: str
    rule: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """The masked text and what was masked: spans sorted, never overlapping."""

    text: str
    spans: tuple[Span, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(span.type for span in self.spans) if self.spans else {}
