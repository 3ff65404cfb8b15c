"""Whether a regular expression is sure to cost linear time on any text.

Bounded repetitions that are not nested try a bounded number of ways at each place, whatever the text; so do branches,
as many as there are, each time they are repeated. That is stricter than need be, and simple enough to be sure of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[a-z\-]+:?))?)"
    r"|(?P<close>\))|(?P<or>\|)|(?P<repeat>[*+?]|\{[0-9]*,?[0-9]*\})[?+]?",
    re.DOTALL,
)
_LITERAL: Final = re.compile(r"[^\\\[\](){}.^$*+?|#\s](?![*?{])|\\[^A-Za-z0-9\s](?![*?{])")
_MOST_WAYS: Final = 10_000


@dataclass(slots=True)
class _Group:
    """An open group: does it hold a repetition of varying length, in how many ways can what it holds match one text,
    and how does each of its branches begin (None: in more than one way)?"""

    varying: bool = False
    ways: int = 1
    starts: list[str | None] = field(default_factory=list[str | None])

    def branch(self, pattern: str, place: int) -> None:
        literal = _LITERAL.match(pattern, place)
        self.starts.append(literal[0].casefold() if literal else None)

    def all_ways(self) -> int:
        """Branches that begin with different characters never match the same text."""
        apart = None not in self.starts and len(set(self.starts)) == len(self.starts)
        return self.ways if apart else self.ways * len(self.starts)


def why_slow(pattern: str) -> str | None:
    """What makes this pattern risky, or None."""
    groups = [_Group()]
    groups[0].branch(pattern, 0)
    closed, closed_at = _Group(), -1
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append(_Group())
        if token["open"] or token["or"]:
            groups[-1].branch(pattern, token.end())
        elif token["close"] and len(groups) > 1:
            closed, closed_at = groups.pop(), token.end()
            groups[-1].varying |= closed.varying
            groups[-1].ways = _capped(groups[-1].ways * closed.all_ways())
        elif token["repeat"]:
            fault = _repeat(token["repeat"], closed if token.start() == closed_at else _Group(starts=[""]), groups[-1])
            if fault:
                return fault
    ways = groups[0].all_ways()
    return f"can match in more than {_MOST_WAYS:,} ways at one place" if ways > _MOST_WAYS else None


def _repeat(repeat: str, repeated: _Group, outer: _Group) -> str | None:
    least, most = _bounds(repeat)
    if most is None:
        return "has a repetition without an upper bound"
    if most > 1 and most > least and repeated.varying:
        return "repeats a group that itself repeats"
    outer.varying |= most > least
    again = repeated.all_ways() ** min(max(most - 1, 0), 32)
    outer.ways = _capped(outer.ways * again * (most - least + 1))
    return None


def _capped(ways: int) -> int:
    return min(ways, _MOST_WAYS + 1)


def _bounds(repeat: str) -> tuple[int, int | None]:
    if repeat in "*+":
        return 0, None
    if repeat == "?":
        return 0, 1
    least, comma, most = repeat[1:-1].partition(",")
    if not comma:
        return int(least or 1), int(least or 1)
    return int(least or 0), int(most) if most else None
