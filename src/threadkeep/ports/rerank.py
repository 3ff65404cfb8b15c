"""Reordering the best hits, by something slower that reads question and text together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

# The question, and the texts found for it, best first; their positions (from 0) in a better order. Positions that are
# left out follow in the order they had, unknown ones are ignored. It may raise `ThreadkeepError`, or
# take too long: then the order stays as it was. Both are given redacted, since some send them to a server.
Rerank = Callable[[str, Sequence[str]], Awaitable[Sequence[int]]]
