"""A retention run that would delete far more than a day's share stops before it changes anything."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from threadkeep import Scope, UserMessage, open_memory
from threadkeep.cli.app import run
from threadkeep.compose.upkeep import open_retention
from threadkeep.errors import RetentionStopped
from threadkeep.settings import Settings

ME = Scope("t", "u", "c")
SETTINGS = Settings(THREADKEEP_EMBEDDER="none")  # pyright: ignore[reportCallIssue]


class At:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


async def _filled(url: str, days_ago: Sequence[tuple[int, int]]) -> None:
    clock = At(datetime.now(UTC))
    async with open_memory(url, settings=SETTINGS, clock=clock) as memory:
        for days, turns in days_ago:
            clock.now = datetime.now(UTC) - timedelta(days=days)
            for start in range(0, turns, 1_000):
                said = [UserMessage(f"turn {start + number}") for number in range(min(1_000, turns - start))]
                await memory.append(ME, said)


async def _left(url: str) -> int:
    async with open_memory(url, settings=SETTINGS) as memory:
        return (await memory.stats(ME)).messages


async def test_a_run_that_would_delete_most_of_the_store_stops(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    await _filled(url, [(100, 1_500), (1, 1_500)])
    async with open_retention(url, settings=SETTINGS) as retention:
        with pytest.raises(RetentionStopped, match=r"1,500 of 3,000 turns.*--force"):
            await retention.run()
        assert (await retention.run(dry_run=True)).turns == 1_500
        assert await _left(url) == 3_000
        assert (await retention.run(force=True)).turns == 1_500
    assert await _left(url) == 1_500


@pytest.mark.parametrize(
    "days_ago", [[(100, 900)], [(100, 1_100), (1, 4_000)]], ids=["few turns", "a small share of many"]
)
async def test_an_ordinary_run_goes_through(tmp_path: Path, days_ago: list[tuple[int, int]]) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    await _filled(url, days_ago)
    async with open_retention(url, settings=SETTINGS) as retention:
        assert (await retention.run()).turns == days_ago[0][1]


def test_the_command_says_how_to_go_on_and_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    asyncio.run(_filled(url, [(100, 1_200)]))
    command = ["retention", "run", "--url", url]
    assert run(command) != 0
    assert "--force" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0
    assert asyncio.run(_left(url)) == 0
