"""The folder where processes count together: who is killed stays counted, no files pile up, and it is nobody else's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.metrics.exposed import Exposed, read
from tests.servers.reaper import reaper
from tests.service.running import clean_environment
from threadkeep.compose.memory import meter_for
from threadkeep.errors import InvalidSetting
from threadkeep.metrics.prometheus import counted_together, exposition, fold_dead
from threadkeep.settings import Settings

ROOT = Path(__file__).parents[2]


@contextmanager
def counting(folder: Path, times: int) -> Iterator[subprocess.Popen[bytes]]:
    """Killed at the end."""
    command = [sys.executable, "-m", "tests.metrics.counting_process", str(folder), str(times)]
    environment = clean_environment(folder.parent, PYTHONPATH=f"{ROOT}/src:{ROOT}")
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=ROOT)
    reaper().watch_process(child.pid)
    assert child.stdout is not None
    assert child.stdout.readline() == b"counted\n"
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        reaper().forget_process(child.pid)


def told(folder: Path) -> Exposed:
    """As any process that shares the folder would tell it, without counting there itself."""
    return read(exposition(counted_together(str(folder)))[1].decode())


def test_what_killed_processes_counted_stays_counted_in_one_file_of_each_kind(tmp_path: Path) -> None:
    folder = tmp_path / "counts"
    with counting(folder, 3), counting(folder, 4):
        assert told(folder)("threadkeep_cache_lookups_total", outcome="hit") == 7
        with counting(folder, 5):
            assert told(folder)("threadkeep_cache_lookups_total", outcome="hit") == 12
        assert told(folder)("threadkeep_recall_duration_seconds_count", status="whole") == 12
    with counting(folder, 6):  # folds those who are gone
        seen = told(folder)
        assert len(list(folder.glob("*.db"))) == 4, "one file of each kind for the dead, one for the living"
        assert seen("threadkeep_cache_lookups_total", outcome="hit") == 18
        assert seen("threadkeep_recall_duration_seconds_count", status="whole") == 18
        assert seen("threadkeep_recall_duration_seconds_bucket", status="whole", le="0.01") == 0
        assert seen("threadkeep_recall_duration_seconds_bucket", status="whole", le="0.025") == 18
        assert seen("threadkeep_recall_duration_seconds_sum", status="whole") == pytest.approx(0.36)
        fold_dead(str(folder))
        assert told(folder).samples == seen.samples


def test_a_process_that_was_killed_before_it_counted_costs_no_scrape(tmp_path: Path) -> None:
    for name in ("counter_999999991.db", "histogram_999999991.db", "counter_999999992.db"):
        (tmp_path / name).touch()
    assert told(tmp_path).samples == {}
    fold_dead(str(tmp_path))
    assert told(tmp_path).samples == {}


def test_the_folder_is_made_for_this_account_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "counts"
    with counting(folder, 1):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InvalidSetting, match="PROMETHEUS_MULTIPROC_DIR: can be written to by others"):
        meter_for(Settings(PROMETHEUS_MULTIPROC_DIR=str(tmp_path)))  # type: ignore[call-arg]


@pytest.mark.parametrize(("metrics", "measured"), [("auto", False), ("off", False), ("on", True)])
def test_a_library_measures_only_where_somebody_would_read_it(metrics: str, measured: bool) -> None:
    assert (meter_for(Settings(THREADKEEP_METRICS=metrics)) is not None) is measured  # type: ignore[call-arg]
