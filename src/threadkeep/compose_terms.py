"""The terms that messages are found by: whether this version made them, and making them anew."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from threadkeep.compose import stores_at
from threadkeep.errors import CapabilityMissing
from threadkeep.ports.index import TermUpkeep
from threadkeep.recall.normalise import NORMALISER_VERSION
from threadkeep.settings import Settings


@dataclass(frozen=True, slots=True)
class TermsReport:
    found: int | None  # nought or less: from before versions were noted, or being made anew
    newest: int = NORMALISER_VERSION

    @property
    def up_to_date(self) -> bool:
        return self.found in (None, self.newest)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"up_to_date": self.up_to_date}


async def check_terms(url: str, settings: Settings) -> TermsReport:
    """Look, and change nothing."""
    async with _upkeep(url, settings) as upkeep:
        return TermsReport(await upkeep.version())


async def rebuild_terms(url: str, settings: Settings, progress: Callable[[int], None] | None = None) -> int:
    """Make all terms anew that another version made; of how many messages. `progress` is told how many so far."""
    done = 0
    async with _upkeep(url, settings) as upkeep:
        while some := await upkeep.rebuild_some(NORMALISER_VERSION):
            done += some
            if progress is not None:
                progress(done)
    return done


@asynccontextmanager
async def _upkeep(url: str, settings: Settings) -> AsyncGenerator[TermUpkeep]:
    stores = await stores_at(url, settings)
    try:
        if stores.upkeep is None:
            raise CapabilityMissing("this store has no index of terms")
        yield stores.upkeep
    finally:
        await stores.archive.close()
