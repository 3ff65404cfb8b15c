"""The two ways a chunk was found, as one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadkeep.ports.knowledge import Passage
from threadkeep.recall.bm25 import rarity

Place = tuple[int, int]  # a document's row and the number of its chunk
_STEPS = 1_000  # whole numbers: databases add them up alike, whatever the order


def telling(holding: Mapping[int, int], chunks: int) -> list[tuple[int, int]]:
    """What each word that occurs says by its rarity, as a database can add it up."""
    return [(word, 1 + round(_STEPS * rarity(count, chunks))) for word, count in sorted(holding.items())]


def merged(
    by_words: Mapping[Place, int], by_vector: Mapping[Place, float], shown: Mapping[Place, tuple[Any, ...]]
) -> tuple[Passage, ...]:
    """Each chunk once: those found by words, most telling first, then those found by their vectors alone.

    `shown` is what they say; what is not there has gone meanwhile.
    """
    return tuple(
        Passage(*shown[place], matched=by_words.get(place, 0), similarity=by_vector.get(place))
        for place in dict.fromkeys((*by_words, *by_vector))
        if place in shown
    )
