"""The shape of a rule, and of the gate that spares most texts the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from threadkeep.policy.redact.view import View


class Hit(NamedTuple):
    """A stretch of the shadow that a rule claims. `sure` breaks ties between rules that claim the same text."""

    start: int
    end: int
    type: str
    rule: str
    sure: int


Spans = Iterable[tuple[int, int]]
Finder = Callable[[View], Spans]
Gate = Callable[[View], bool]

# How a claim is weighed against another on the same text: see `overlap.py`.
FORM = 10
"""A shape that other things have too."""
CONTEXT = 20
"""A shape, and a word beside it that names it."""
CHECKED = 30
"""A shape whose check digit, registry or prefix agrees."""
CERTAIN = 40
"""A shape that nothing else has, or a label and a check digit together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`find` yields offsets of the shadow and is called only if `gate` lets the text pass."""

    name: str
    type: str
    gate: Gate
    find: Finder
    sure: int = CHECKED


def digits(view: View) -> bool:
    return view.digit


def cluster(view: View) -> bool:
    return view.cluster


def contains(*literals: str) -> Gate:
    """Any of these lower-case strings."""

    def gate(view: View) -> bool:
        lower = view.lower
        return any(literal in lower for literal in literals)

    return gate


def mentions(*words: str) -> Gate:
    """Any of these ASCII words, whole."""
    wanted = frozenset(words)

    def gate(view: View) -> bool:
        return not wanted.isdisjoint(view.words)

    return gate
