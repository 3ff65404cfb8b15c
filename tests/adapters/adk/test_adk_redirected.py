"""ADK's own session tests, pointed at our service. They stand in its public repository, not in its package:

ADK_SESSION_TESTS=adk-python/tests/unittests/sessions/test_session_service.py \\
    pytest tests/adapters/adk/test_adk_redirected.py
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

# What only one of ADK's services has: these reach into it.
PRIVATE = {
    "test_sqlite_session_service_accepts_sqlite_urls": "a file of its own naming",
    "test_sqlite_session_service_preserves_uri_query_parameters": "the same, and its driver's error",
    "test_sqlite_session_service_accepts_absolute_sqlite_urls": "the same",
    "test_database_session_service_get_session_uses_read_only_factory": "its SQLAlchemy sessions, replaced by mocks",
    "test_database_session_service_list_sessions_uses_read_only_factory": "the same",
    "test_database_session_service_list_sessions_orders_by_update_time_then_id": "its tables, changed by hand",
    "test_append_event_raises_if_app_state_row_missing": "the same",
    "test_append_event_raises_if_user_state_row_missing": "the same",
    "test_append_event_when_session_is_same_ref_as_storage_session": "its dictionary of sessions",
    "test_create_session_calls_rollback_on_commit_failure": "its SQLAlchemy sessions, made to fail",
    "test_append_event_calls_rollback_on_commit_failure": "the same",
    "test_delete_session_calls_rollback_on_commit_failure": "the same",
    "test_service_recovers_after_multiple_failures": "the same",
    "test_append_event_reads_storage_revision_before_commit": "the same",
    "test_create_session_reads_storage_revision_before_commit": "the same",
    "test_concurrent_prepare_tables_no_race_condition": "its flag for tables made",
    "test_prepare_tables_serializes_schema_detection_and_creation": "the same",
    "test_prepare_tables_idempotent_after_creation": "the same",
    "test_public_prepare_tables_eager_initialization": "the same",
    "test_get_or_create_state_returns_existing_row": "a function of its own",
    "test_get_or_create_state_creates_new_row": "the same",
    "test_get_or_create_state_handles_race_condition": "the same",
    "test_database_session_service_uses_naive_datetime_for_dialect": "its columns' time zones",
    "test_database_session_service_keeps_timezone_for_spanner": "the same",
    "test_database_session_service_requires_one_argument": "its constructor",
    "test_database_session_service_engine_error_hides_password": "the same",
    "test_database_session_service_malformed_url_reports_usable_error": "the same",
    "test_database_session_service_visible_in_module_namespace": "its place in its package",
    "test_database_session_service_sqlite_file_timestamp_read_after_reopen": "its tables, changed by hand",
    "test_delete_session_sync_removes_only_the_targeted_users_session": "verbs that only its in-memory service has",
    "test_delete_session_sync_unknown_session_is_a_noop": "the same",
    "test_list_sessions_sync_strips_events_and_merges_scoped_state": "the same",
    "test_list_sessions_sync_unknown_app_or_user_returns_empty_response": "the same",
}
# These pass whatever our service does: what they ask for is asked of ADK's.
UNTOLD = {"test_append_event_locks_only_scopes_with_deltas"}
# Where ours does otherwise on purpose.
DIVERGENCES = {
    "test_get_session_orders_tied_timestamps_by_id[True-SessionServiceType.DATABASE]": (
        "events with equal times are read in the order in which they were written, not in that of their ids"
    ),
    "test_get_session_orders_tied_timestamps_by_id[True-SessionServiceType.SQLITE]": "the same",
}
AT_LEAST = 21  # of the suite of ADK 2.0


def test_all_of_adks_session_tests_pass_but_those_that_look_inside_its_own(
    place: dict[str, Any], tmp_path: Path
) -> None:
    tests = os.environ.get("ADK_SESSION_TESTS")
    if tests is None:
        pytest.skip("opt-in: set ADK_SESSION_TESTS to ADK's tests/unittests/sessions/test_session_service.py")
    report = tmp_path / "report.xml"
    options = [
        "-q",
        "-o",
        "asyncio_mode=auto",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        "--tb=short",
        "-o",
        "junit_family=legacy",
    ]
    command = [sys.executable, "-m", "pytest", "-p", "redirect_adk", *options, str(Path(tests).absolute())]
    told = {"url": place["url"], "redis": place.get("redis")}
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "ADK_SESSIONS_PLACE": json.dumps(told)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert report.exists(), ran.stdout + ran.stderr
    # Those that never asked for a service of ours tell nothing of it.
    cases = {str(one.get("name")): one for one in ElementTree.parse(report).iter("testcase") if _asked_ours(one)}
    failed = {name for name, case in cases.items() if _has(case, "failure", "error")}
    own = {name for name in cases if _bare(name) in PRIVATE}
    print(f"{len(cases) - len(own)} tests of ADK's fit our service, {len(cases.keys() - failed - own)} pass")

    assert failed == own | (DIVERGENCES.keys() & cases.keys()), ran.stdout
    assert len(cases.keys() - failed) >= AT_LEAST
    assert not [name for name, case in cases.items() if _has(case, "skipped")]


def _asked_ours(case: ElementTree.Element) -> bool:
    found = sum(int(str(one.get("value"))) for one in case.iter("property") if one.get("name") == "ours")
    return found > 0 and _bare(str(case.get("name"))) not in UNTOLD


def _bare(name: str) -> str:
    return name.partition("[")[0]


def _has(case: ElementTree.Element, *outcomes: str) -> bool:
    return any(case.find(outcome) is not None for outcome in outcomes)
