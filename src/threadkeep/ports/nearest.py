"""Messages that mean nearly the same as a question, whichever embedder and vector index stand behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from threadkeep.scope import Scope


class Near(NamedTuple):
    """A message the archive holds, and the cosine of its nearest chunk with the question."""

    conversation: str
    seq: int
    message_id: str
    cosine: float
    model: str = ""  # that made the vectors


# The `k` nearest messages of the scope's user, or of its one conversation, best first; empty where none has a vector
# yet. Give it a redacted question: some embedders send it to a server. Raises `EmbedderError` or `StoreError` when it
# cannot be answered now: the caller goes on with words alone, and says so.
Nearest = Callable[[Scope, str, int], Awaitable[Sequence[Near]]]
