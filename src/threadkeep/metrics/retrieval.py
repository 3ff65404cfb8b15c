"""Retrieval, measured."""

from __future__ import annotations

from typing import Any

from threadkeep.agent.retrieval import Retrieval
from threadkeep.agent.retrieval_turn import Progress, RetrievalRequest, RetrievalResult
from threadkeep.metrics.measured import RETRIEVAL, timed
from threadkeep.ports.health import Meter


class MeasuredRetrieval(Retrieval):
    def __init__(self, meter: Meter, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._meter = meter

    async def ask(self, request: RetrievalRequest, progress: Progress | None = None) -> RetrievalResult:
        with timed(self._meter, RETRIEVAL) as work:
            found = await super().ask(request, progress)
            work.status = "cached" if found.cached else "found"
        return found
