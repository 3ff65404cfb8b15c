"""Tests of the frameworks that ours fails, and why: they look inside an implementation of the framework's own.

What LangGraph's own saver and store fail as well is not listed: the runner tries those beside ours.
"""

from __future__ import annotations

# What only one of ADK's services has: these reach into it.
ADK = {
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

# Where ours does otherwise on purpose.
ADK_DIVERGENCES = {
    "test_get_session_orders_tied_timestamps_by_id": (
        "events with equal times are read in the order in which they were written, not in that of their ids"
    ),
}

# What only `SQLiteSession` has: these reach into it. Beside each, the test of ours that proves the same on our storage.
OPENAI_AGENTS = {
    "test_sqlite_session_close_closes_worker_thread_connections": (
        "its set of connections",
        "test_closing_closes_every_connection_that_was_opened",
    ),
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": (
        "the same",
        "test_loops_and_threads_that_come_and_go_leave_no_connection_behind",
    ),
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": (
        "the same",
        "test_loops_and_threads_that_come_and_go_leave_no_connection_behind",
    ),
    "test_sqlite_session_keeps_connections_of_live_worker_threads": (
        "the same",
        "test_a_loop_that_still_runs_keeps_its_session_while_another_writes",
    ),
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": (
        "a broken row written into its table by hand",
        "test_the_latest_item_that_can_be_read_is_popped",
    ),
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": (
        "the same",
        "test_where_no_item_can_be_read_none_is_popped",
    ),
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": (
        "the same",
        "test_a_limit_counts_only_items_that_can_be_read",
    ),
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": (
        "the same",
        "test_a_limit_counts_only_items_that_can_be_read",
    ),
    "test_sqlite_session_file_lock_is_shared_across_instances": (
        "its lock, and its count of locks",
        "test_two_sessions_on_one_file_share_what_is_open_until_the_last_is_closed",
    ),
    "test_sqlite_session_failed_add_items_releases_write_lock": (
        "its table, probed from outside",
        "test_an_add_that_fails_stores_nothing_and_releases_the_write_lock",
    ),
    "test_sqlite_session_failed_clear_session_rolls_back": (
        "its table, dropped",
        "test_a_pop_or_a_clear_that_fails_is_rolled_back_and_releases_the_write_lock",
    ),
    "test_sqlite_session_failed_pop_item_releases_write_lock": (
        "the same",
        "test_a_pop_or_a_clear_that_fails_is_rolled_back_and_releases_the_write_lock",
    ),
    "test_sqlite_session_rollback_failure_evicts_connection": (
        "its connection, replaced by a failing one",
        "test_a_connection_that_cannot_roll_back_is_replaced",
    ),
    "test_sqlite_session_close_retries_quarantined_connection": (
        "the same",
        "test_one_that_cannot_even_be_closed_is_tried_again",
    ),
} | {
    f"test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[{verb}]": (
        "its connection, replaced by one that waits",
        "test_a_write_that_is_cancelled_after_its_commit_is_done_when_the_cancellation_arrives",
    )
    for verb in ("add", "pop", "clear")
}
