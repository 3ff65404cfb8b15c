# ruff: noqa: E501  (tables of words and forms)
"""The shape of a rule, and of the gate that spares most texts the rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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
    """`find` yields offsets of the shadow."""

    name: str
    type: str
    find: Finder
    sure: int = CHECKED


Gate = Callable[[View], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that are worth trying on the same texts, and what a text must have before any of them can match.

    At least `least` of the words (any text, if there are none); this many digits in all; signs in which this pattern is
    found (see `selection.py`); Chinese characters; one of these lower-case strings; what a look at the shadow
    and its lower case finds; and whatever the gate finds, which runs last. `sign` is a pattern without look-around
    that is found in every shadow in which a rule matches (see `prescan.py`): needed where none of these says enough,
    useful where they say it of too many texts. `narrow` is one more such pattern, tried only on a text that has all the
    rest: with these in it the prescan's automaton would be too large to be fast. `apart` gives the patterns automata of their
    own, for the same reason: the states of long counted repetitions multiply with those of all other signs.
    """

    rules: tuple[Rule, ...]
    words: str = ""
    least: int = 1
    digits: int = 0
    signs: str = ""
    han: bool = False
    strings: tuple[str, ...] = ()
    look: Callable[[str, str], bool] | None = None
    gate: Gate | None = None
    sign: str = ""
    narrow: str = ""
    apart: bool = False


CLUSTER = r"[0-9](?:[^0-9A-Za-z\n]{0,3}[0-9]){5}"
"""What a text has in which six digits or more stand together."""


def together(digits: int) -> Gate:
    """A gate for rules that need so many digits with little between them."""
    return lambda view: view.most_together >= digits


def every(pattern: str) -> Finder:
    """A finder that claims each match of a pattern, or the one group of it that took part."""
    compiled = re.compile(pattern)

    def find(view: View) -> Iterator[tuple[int, int]]:
        return (match.span(match.lastindex or 0) for match in compiled.finditer(view.text))

    return find
