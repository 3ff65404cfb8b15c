"""Traditional from simplified Chinese, by the characters that only one of the two has (`han.txt`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

_MOST_CHARACTERS = 400
# Quotation marks that one side uses and the other hardly does.
_MARKS = {"「": "Hant", "」": "Hant", "『": "Hant", "』": "Hant", "﹁": "Hant", "“": "Hans", "”": "Hans"}
_LEANING = 0.6


def script_of(text: str) -> tuple[str | None, float]:
    """`Hant`, `Hans` or, with nothing to go by, None; and how sure that is (0.5: not at all).

    Characters that prove a script decide; only where there are none do those that lean to one.
    """
    proofs, leanings = _tables()
    sample = text[:_MOST_CHARACTERS]
    if found := [proofs[char] for char in sample if char in proofs]:
        return _majority(found)
    script, _ = _majority([leanings[char] for char in sample if char in leanings])
    return script, _LEANING if script else 0.5


def _majority(found: list[str]) -> tuple[str | None, float]:
    hant = found.count("Hant")
    hans = len(found) - hant
    if hant == hans:
        return None, 0.5
    # A tenth for each side, seen or not: a single character may be a slip, or a name.
    return ("Hant" if hant > hans else "Hans"), (max(hant, hans) + 0.1) / (len(found) + 0.2)


@cache
def _tables() -> tuple[Mapping[str, str], Mapping[str, str]]:
    proofs: dict[str, str] = {}
    leanings = dict(_MARKS)
    source = resources.files("threadkeep.models.language").joinpath("han.txt").read_text("utf-8")
    for line in source.splitlines():
        if not line.startswith("#"):
            script, *leaning, characters = line.split(" ")
            (leanings if leaning else proofs).update(dict.fromkeys(characters, script))
    return proofs, leanings
