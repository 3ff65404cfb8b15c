"""The two ways a chunk was found, as one list."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from threadkeep.ports.knowledge import Passage

Found = tuple[int, int]  # a document's row and the number of its chunk


def merged(
    by_words: Mapping[Found, int],
    by_vector: Mapping[Found, float],
    passage: Callable[[Found, int, float | None], Passage],
) -> tuple[Passage, ...]:
    """Each chunk once; most terms first, then the nearest, then in the order of ids."""
    found = [passage(one, by_words.get(one, 0), by_vector.get(one)) for one in dict.fromkeys((*by_words, *by_vector))]
    return tuple(sorted(found, key=lambda one: (-one.matched, -(one.similarity or 0), one.document_id, one.chunk)))
