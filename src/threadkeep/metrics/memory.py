"""Memory, measured: how long its verbs take, what policy refused and what it masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadkeep.events import Event
from threadkeep.memory import Memory
from threadkeep.metrics.names import APPEND, RECALL, REDACTED, REFUSED
from threadkeep.metrics.timing import timed
from threadkeep.model import Indexing, Recalled, Receipt
from threadkeep.ports.meter import Meter
from threadkeep.scope import Scope


class MeasuredMemory(Memory):
    def __init__(self, meter: Meter, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._meter = meter

    async def append(
        self,
        scope: Scope,
        events: Sequence[Event],
        key: str | None = None,
        index: Indexing = "later",
        *,
        languages: Sequence[str] | None = None,
    ) -> Receipt:
        """As `Memory.append`. A replay is timed; what it refused and masked was counted the first time."""
        with timed(self._meter, APPEND) as work:
            receipt = await super().append(scope, events, key, index, languages=languages)
            work.status = receipt.status
        if not receipt.replayed:
            for reason, times in receipt.refused.items():
                self._meter.count(REFUSED, times, reason=reason)
            for kind, times in receipt.redacted.items():
                self._meter.count(REDACTED, times, type=kind)
        return receipt

    async def recall(
        self, scope: Scope, query: str, k: int = 10, budget: int | None = None, conversation: str | None = None
    ) -> Recalled:
        with timed(self._meter, RECALL) as work:
            found = await super().recall(scope, query, k, budget, conversation)
            work.status = "degraded" if found.degraded else "whole"
        return found
