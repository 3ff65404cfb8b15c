"""BM25: the weight of a term by its rarity, its repeats in a text, and the text's length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Saturation:
    repeats: float = 0.9  # k1: how soon repeating a term stops helping
    length: float = 0.6  # b: how much a long text is held back
    sharpness: float = 1.5  # power of the rarity: above one, a rare term outweighs several common ones


def rarity(holding: float, total: int, sharpness: float = 1.0) -> float:
    """Never negative: `holding` may be counted a moment later than `total`."""
    held = min(holding, total)
    return math.log(1 + (total - held + 0.5) / (held + 0.5)) ** sharpness


def saturated(count: float, relative_length: float, how: Saturation) -> float:
    """What a term that stands so often in a text is worth, as a share of its rarity."""
    return (how.repeats + 1) * count / (count + held_back_by(relative_length, how))


def held_back_by(relative_length: float, how: Saturation) -> float:
    """What a count is weighed against: more in a long text."""
    return how.repeats * (1 - how.length + how.length * relative_length)


def score(
    counts: Iterable[tuple[str, float]], weights: Mapping[str, float], relative_length: float, how: Saturation
) -> float:
    """`weights` are the terms' rarities, of all that are counted; `relative_length` is one for a usual text."""
    held_back = held_back_by(relative_length, how)
    return (how.repeats + 1) * sum(weights[term] * count / (count + held_back) for term, count in counts)
