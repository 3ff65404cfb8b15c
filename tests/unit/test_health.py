"""Signs of life: what is away is told, never raised, and never waited for."""

import asyncio
from typing import Any

import pytest

from threadkeep.errors import MemoryClosed, StoreCorrupt, StoreUnavailable
from threadkeep.health import HealthCheck
from threadkeep.ports.health import Health
from threadkeep.ports.journal import Depth

LAG = Depth(entries=3, claimed=1, dead=0, oldest_seconds=1.5)


class Answering:
    """An archive or a journal: its one verb answers, raises, or never ends."""

    def __init__(self, answer: Any = None, *, hangs: bool = False) -> None:
        self._answer = answer
        self._hangs = hangs

    async def messages(self, *_: Any) -> Any:
        if self._hangs:
            await asyncio.Event().wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    depth = messages


AWAY = StoreUnavailable("away")
WELL = Answering("a history")


async def checked(archive: Any, journal: Any = None) -> Health:
    return await HealthCheck(archive, journal, patience=0.05)()


async def test_an_archive_alone_is_ok_or_down() -> None:
    assert (await checked(WELL)).as_dict() == {"status": "ok", "stores": {"archive": "ok"}, "lag": None}
    assert (await checked(Answering(AWAY))).status == "down"


@pytest.mark.parametrize(
    ("archive", "journal", "status", "lag"),
    [
        (WELL, Answering(LAG), "ok", LAG),
        (WELL, Answering(AWAY), "degraded", None),
        (Answering(AWAY), Answering(LAG), "degraded", LAG),
        (Answering(StoreCorrupt("damaged")), Answering(LAG), "degraded", LAG),
        (Answering(AWAY), Answering(AWAY), "down", None),
        (Answering(hangs=True), Answering(LAG), "degraded", LAG),
        (Answering(hangs=True), Answering(hangs=True), "down", None),
    ],
)
async def test_two_stores_are_degraded_while_one_carries_on(archive: Any, journal: Any, status: str, lag: Any) -> None:
    found = await checked(archive, journal)
    assert (found.status, found.lag) == (status, lag)


async def test_what_is_no_trouble_of_a_store_is_raised() -> None:
    with pytest.raises(MemoryClosed):
        await checked(Answering(MemoryClosed("closed")))
