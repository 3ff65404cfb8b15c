"""Names of streets and towns, one list per file, as rules match them: folded to plain lower-case letters."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from threadkeep.policy.redact.rule import fold


@cache
def names(file: str) -> frozenset[str]:
    """Return the names of `<file>.txt`, separated by `|`; rows that begin with `#` are comments."""
    text = resources.files("threadkeep.policy.redact.gazetteer").joinpath(f"{file}.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return frozenset(fold(name).lower() for line in lines for name in line.split("|"))


def any_of(file: str) -> str:
    """Return a pattern without look-around that matches any of the names, the longest first."""
    return "(?:" + "|".join(map(re.escape, sorted(names(file), key=lambda name: (-len(name), name)))) + ")"


def words(text: str) -> frozenset[str]:
    """Return the words of a list that stands in the code beside the grammar it belongs to."""
    return frozenset(text.split())
