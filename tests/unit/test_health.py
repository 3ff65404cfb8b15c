"""Signs of life: what is away is told, never raised, and never waited for."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from threadkeep import open_memory
from threadkeep.core.stores import HealthCheck, LastWrite
from threadkeep.errors import MemoryClosed, StoreCorrupt, StoreFull, StoreRefused, StoreUnavailable
from threadkeep.ports.health import Health, HealthFinding
from threadkeep.ports.journal import Depth
from threadkeep.settings import Settings

READ_ONLY = HealthFinding("read_only", "the server is read-only", "point DATABASE_URL at its primary")
LAG = Depth(entries=3, claimed=1, dead=0, oldest_seconds=1.5)


class Answering:
    """An archive or a journal: its one verb answers, raises, or never ends."""

    def __init__(self, answer: Any = None, *, hangs: bool = False, writable: bool = True) -> None:
        self._answer = answer
        self._hangs = hangs
        self._writable = writable

    async def messages(self, *_: Any) -> Any:
        if self._hangs:
            await asyncio.Event().wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    depth = messages

    async def write_obstacle(self) -> HealthFinding | None:
        return None if self._writable else READ_ONLY


AWAY = StoreUnavailable("away")
WELL = Answering("a history")


async def checked(archive: Any, journal: Any = None) -> Health:
    return await HealthCheck(archive, journal, patience=0.05)()


async def test_an_archive_alone_is_ok_or_down() -> None:
    assert (await checked(WELL)).as_dict() == {
        "status": "ok", "stores": {"archive": "ok"}, "lag": None, "connections": None, "findings": [],
    }  # fmt: skip
    assert (await checked(Answering(AWAY))).status == "down"


async def test_an_archive_that_can_only_be_read_stores_nothing_unless_a_journal_takes_it() -> None:
    only_read = Answering("a history", writable=False)
    alone = await checked(only_read)
    assert (alone.status, alone.stores, alone.findings) == ("down", {"archive": "read_only"}, (READ_ONLY,))
    behind = await checked(only_read, Answering(LAG))
    assert (behind.status, behind.stores) == ("degraded", {"redis": "ok", "archive": "read_only"})
    assert (await checked(only_read, Answering(AWAY))).status == "down"


async def test_where_the_archive_must_have_it_first_the_journal_alone_stores_nothing() -> None:
    durable = HealthCheck(Answering(AWAY), Answering(LAG), patience=0.05, queues=False)  # type: ignore[arg-type]
    assert (await durable()).status == "down"


@pytest.mark.parametrize(
    ("depth", "codes"),
    [
        (Depth(entries=1, claimed=0, dead=0, oldest_seconds=59), []),
        (Depth(entries=1, claimed=0, dead=0, oldest_seconds=61), ["journal_behind"]),
        (Depth(entries=0, claimed=0, dead=2, oldest_seconds=0), ["dead_letters"]),
    ],
)
async def test_a_journal_that_is_not_drained_is_a_finding(depth: Depth, codes: list[str]) -> None:
    found = await checked(WELL, Answering(depth))
    assert [one.code for one in found.findings] == codes
    assert found.status == ("degraded" if codes else "ok")


def test_a_store_that_was_full_counts_as_full_for_a_minute_or_until_a_write_passes() -> None:
    """Without traffic no append would tell that there is room again."""
    now = [0.0]
    last, well = LastWrite(lambda: now[0]), Health({"archive": "ok"})
    assert last.seen_in(well) == well
    last.failed(StoreFull("full"))
    assert last.seen_in(well).status == "down"
    now[0] = 61
    assert last.seen_in(well).status == "degraded"
    last.failure = None
    assert last.seen_in(well) == well
    last.failed(StoreUnavailable("a moment ago"))
    assert last.seen_in(well).status == "degraded"


async def test_a_store_that_is_unavailable_says_why_in_words_that_name_no_address() -> None:
    refused = StoreRefused("postgresql://db:5432/x: refused; check grants", problem="refused", fix="check grants")
    full = StoreFull("Redis at cache:6379 is full; raise it", problem="Redis is full", fix="raise it")
    found = await checked(Answering(refused), Answering(full))
    assert [(one.code, one.message, one.fix) for one in found.findings] == [
        ("store_refused", "refused", "check grants"),
        ("redis_full", "Redis is full", "raise it"),
    ]
    silent = await checked(Answering(hangs=True), Answering(StoreUnavailable("at cache:6379")))
    assert [one.code for one in silent.findings] == ["store_unavailable", "redis_unavailable"]
    assert all(one.fix and "6379" not in one.message for one in silent.findings)


def test_a_failed_append_is_logged_once_a_minute_for_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    last = LastWrite(lambda: now[0])
    for error in (StoreFull("no space (DiskFull 53100)"), StoreFull("no space"), StoreUnavailable("away")):
        last.failed(error)
    last.failure = None
    now[0] = 59
    last.failed(StoreFull("still no space"))
    now[0] = 60
    last.failed(StoreFull("again no space"))
    assert [record.getMessage() for record in caplog.records] == [
        "an append failed (store_full): no space (DiskFull 53100)",
        "an append failed (store_unavailable): away",
        "an append failed (store_full): again no space",
    ]


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


async def test_a_memory_without_a_file_is_well() -> None:
    async with open_memory("sqlite://", settings=Settings()) as memory:
        assert (await memory.health()).status == "ok"


@pytest.mark.parametrize("denied", ["memory.db", ""])
async def test_a_file_or_folder_without_write_access_can_only_be_read(
    denied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test may run as root, to whom nothing is denied."""
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=Settings()) as memory:
        assert (await memory.health()).status == "ok"
        monkeypatch.setattr(os, "access", _allowed_but_for(tmp_path / denied))
        found = await memory.health()
        assert (found.status, found.stores) == ("down", {"archive": "read_only"})


def _allowed_but_for(denied: Path) -> Callable[[Path, int], bool]:
    return lambda path, mode: Path(path) != denied
