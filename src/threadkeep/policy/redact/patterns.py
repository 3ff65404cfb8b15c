"""Whether a regular expression is sure to cost linear time on any text.

Bounded repetitions that are not nested try a bounded number of ways at each place, whatever the text. That is stricter
than need be, and simple enough to be sure of.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[a-z\-]+:?))?)"
    r"|(?P<close>\))|(?P<repeat>[*+?]|\{[0-9]*,?[0-9]*\})[?+]?",
    re.DOTALL,
)
_MOST_WAYS: Final = 10_000


def why_slow(pattern: str) -> str | None:
    """What makes this pattern risky, or None."""
    varying = [False]  # for each open group: does it hold a repetition of varying length?
    closed, ways = False, 1
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            varying.append(False)
        elif token["close"] and len(varying) > 1:
            closed = varying.pop()
            varying[-1] = varying[-1] or closed
            continue
        elif token["repeat"]:
            least, most = _bounds(token["repeat"])
            if most is None:
                return "has a repetition without an upper bound"
            if most > 1 and most > least and closed:
                return "repeats a group that itself repeats"
            varying[-1] = varying[-1] or most > least
            ways *= most - least + 1
        closed = False
    return f"can match in more than {_MOST_WAYS:,} ways at one place" if ways > _MOST_WAYS else None


def _bounds(repeat: str) -> tuple[int, int | None]:
    if repeat in "*+":
        return 0, None
    if repeat == "?":
        return 0, 1
    least, comma, most = repeat[1:-1].partition(",")
    if not comma:
        return int(least or 1), int(least or 1)
    return int(least or 0), int(most) if most else None
