"""The SDK's own session tests, pointed at our session. They come with its source distribution, not with its wheel:

pip download --no-deps --no-binary :all: openai-agents && tar xzf openai_agents-*.tar.gz
OPENAI_AGENTS_SOURCE=openai_agents-0.24.0 pytest tests/adapters/openai_agents/test_redirected.py
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.adapters.openai_agents import test_session_storage as storage

FILES = ("test_session", "test_session_limit", "test_session_context_wrapper", "test_session_persistence_sanitize")
# What only `SQLiteSession` has: these reach into it. Beside each, what of ours proves the same on our storage.
PRIVATE = {
    "test_sqlite_session_close_closes_worker_thread_connections": (
        "its set of connections",
        storage.test_closing_closes_every_connection_that_was_opened,
    ),
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": (
        "the same",
        storage.test_loops_and_threads_that_come_and_go_leave_no_connection_behind,
    ),
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": (
        "the same",
        storage.test_loops_and_threads_that_come_and_go_leave_no_connection_behind,
    ),
    "test_sqlite_session_keeps_connections_of_live_worker_threads": (
        "the same",
        storage.test_a_loop_that_still_runs_keeps_its_session_while_another_writes,
    ),
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": (
        "a broken row written into its table by hand",
        storage.test_the_latest_item_that_can_be_read_is_popped,
    ),
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": (
        "the same",
        storage.test_where_no_item_can_be_read_none_is_popped,
    ),
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": (
        "the same",
        storage.test_a_limit_counts_only_items_that_can_be_read,
    ),
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": (
        "the same",
        storage.test_a_limit_counts_only_items_that_can_be_read,
    ),
    "test_sqlite_session_file_lock_is_shared_across_instances": (
        "its lock, and its count of locks",
        storage.test_two_sessions_on_one_file_share_what_is_open_until_the_last_is_closed,
    ),
    "test_sqlite_session_failed_add_items_releases_write_lock": (
        "its table, probed from outside",
        storage.test_an_add_that_fails_stores_nothing_and_releases_the_write_lock,
    ),
    "test_sqlite_session_failed_clear_session_rolls_back": (
        "its table, dropped",
        storage.test_a_pop_or_a_clear_that_fails_is_rolled_back_and_releases_the_write_lock,
    ),
    "test_sqlite_session_failed_pop_item_releases_write_lock": (
        "the same",
        storage.test_a_pop_or_a_clear_that_fails_is_rolled_back_and_releases_the_write_lock,
    ),
    "test_sqlite_session_rollback_failure_evicts_connection": (
        "its connection, replaced by a failing one",
        storage.test_a_connection_that_cannot_roll_back_is_replaced,
    ),
    "test_sqlite_session_close_retries_quarantined_connection": (
        "the same",
        storage.test_one_that_cannot_even_be_closed_is_tried_again,
    ),
} | {
    f"test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[{verb}]": (
        "its connection, replaced by one that waits",
        storage.test_a_write_that_is_cancelled_after_its_commit_is_done_when_the_cancellation_arrives,
    )
    for verb in ("add", "pop", "clear")
}


def test_what_we_cannot_run_of_the_sdks_we_have_a_test_of_our_own_for() -> None:
    assert len(PRIVATE) == 17
    for _, twin in PRIVATE.values():
        assert twin.__name__.startswith("test_")  # or pytest would not run it
        assert twin.__module__ == storage.__name__


def test_all_of_the_sdks_session_tests_pass_but_those_that_look_inside_its_own(tmp_path: Path) -> None:
    source = os.environ.get("OPENAI_AGENTS_SOURCE")
    if source is None:
        pytest.skip("opt-in: set OPENAI_AGENTS_SOURCE to the SDK's unpacked source distribution")
    report = tmp_path / "report.xml"
    tests = [str(Path("tests", "memory", f"{name}.py")) for name in FILES]
    options = ["-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", "-p", "redirect", *options, *tests]
    # Its tests are a package called `tests`, and so are ours: the plugin is found by its folder.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)
    assert report.exists(), ran.stdout + ran.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = {
        str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None
    }

    passed = {str(case.get("name")) for case in cases} - failed

    assert failed == set(PRIVATE)
    assert len([name for name in passed if "run_sync" in name]) >= 12
    assert len(cases) - len(failed) >= 96
    assert not [case.get("name") for case in cases if case.find("skipped") is not None]
