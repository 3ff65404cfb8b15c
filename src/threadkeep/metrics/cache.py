"""The semantic cache, measured: how often it had the answer, and how often it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from threadkeep.errors import ThreadkeepError
from threadkeep.metrics.measured import CACHE, CACHE_FAILURES
from threadkeep.ports.cache import CachePlace
from threadkeep.ports.health import Meter
from threadkeep.ports.models import Vector
from threadkeep.recall.cache import SemanticCache

T = TypeVar("T")


class MeasuredCache(SemanticCache):
    def __init__(self, meter: Meter, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._meter = meter

    async def get(
        self, place: CachePlace, vector: Vector, read: Callable[[Any], Awaitable[T | None]], *, told_apart: bool = True
    ) -> T | None:
        found = await super().get(place, vector, read, told_apart=told_apart)
        self._meter.count(CACHE, outcome="miss" if found is None else "hit")
        return found

    def _failed(self, doing: str, problem: ThreadkeepError) -> None:
        super()._failed(doing, problem)
        self._meter.count(CACHE_FAILURES)
