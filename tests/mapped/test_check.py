"""The mapping against the real table: `doctor` says what does not fit, and which setting to change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import ask, turns_table


def misfits(make_module: MakeModule, url: str, config: dict[str, Any] | None = None, **changes: str | None) -> Any:
    ask(url, turns_table(url, "conversations", **changes))
    module = make_module(url, **({"tables": {"memories": None}} | (config or {})))
    health = module.health()["database"]
    return health["status"], [(one["setting"], one["problem"]) for one in health["misfits"]]


EXACT = {"conversation_id": "varchar(255) NOT NULL", "user_id": "varchar(255) NOT NULL"}
EXACT_MYSQL = {name: kind.replace(" NOT", " COLLATE utf8mb4_bin NOT") for name, kind in EXACT.items()}


def exact(url: str) -> dict[str, str]:
    return EXACT if url.startswith("postgres") else EXACT_MYSQL


def test_a_table_that_fits_has_nothing_to_say(make_module: MakeModule, empty_url: str) -> None:
    assert misfits(make_module, empty_url, **exact(empty_url)) == ("ok", [])


@pytest.mark.parametrize(
    ("changes", "setting", "problem", "status"),
    [
        ({"token_data": None}, "columns_map.token_data", "has no column token_data", "failed"),
        ({"token_data": "integer"}, "columns_map.token_data", "is integer", "failed"),
        ({"created_at": "integer NOT NULL"}, "columns_map.created_at", "is integer", "failed"),
        ({"extra": "varchar(5) NOT NULL"}, "tables.conversations", "extra must be given", "failed"),
        ({"cid": "varchar(10)"}, "columns_map.cid", "holds 10 characters", "ok"),
        ({"token_data": "varchar(255)"}, "columns_map.token_data", "holds 255 characters", "ok"),
        ({"key": None}, "tables.conversations", "no unique index", "ok"),
    ],
)
def test_what_does_not_fit_is_named_with_its_setting(
    make_module: MakeModule, empty_url: str, changes: dict[str, str | None], setting: str, problem: str, status: str
) -> None:
    found = misfits(make_module, empty_url, **(exact(empty_url) | changes))
    assert found[0] == status
    assert [(setting in one[0], problem in one[1]) for one in found[1]] == [(True, True)]


def test_a_missing_table_names_the_variable_that_named_it(make_module: MakeModule, empty_url: str) -> None:
    module = make_module(empty_url, {"memory_table_map": {"conversations": "nowhere"}}, tables={"memories": None})
    (only,) = module.health()["database"]["misfits"]
    assert (only["setting"], only["fatal"]) == ("MEMORY_TABLE_MAP conversations", True)


def test_columns_that_the_server_fills_need_no_mapping(make_module: MakeModule, empty_url: str) -> None:
    number = "bigserial" if empty_url.startswith("postgres") else "bigint AUTO_INCREMENT UNIQUE"
    filled = {"id": number, "added": "timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL", "note": "text"}
    assert misfits(make_module, empty_url, **(exact(empty_url) | filled)) == ("ok", [])


def test_a_time_that_is_too_coarse_is_told(make_module: MakeModule, empty_url: str) -> None:
    coarse = "timestamp(0) NOT NULL" if empty_url.startswith("postgres") else "datetime NOT NULL"
    found = misfits(make_module, empty_url, **(exact(empty_url) | {"created_at": coarse}))
    assert found == ("ok", [("columns_map.created_at", "conversations.created_at keeps 0 digits of a second")])


def test_a_collation_that_merges_ids_is_told(make_module: MakeModule, empty_url: str) -> None:
    found = misfits(make_module, empty_url)[1]
    told = [setting for setting, problem in found if "without regard to case" in problem]
    merged = [] if empty_url.startswith("postgres") else ["columns_map.conversation_id", "columns_map.user_id"]
    assert told == merged


def test_a_database_that_is_away_is_a_failed_one(make_module: MakeModule) -> None:
    health = make_module("postgresql://nobody@127.0.0.1:1/none").health()
    assert (health["status"], health["redis"]["status"]) == ("degraded", "ok")
    assert "could not be reached" in health["database"]["error"]


def test_leaving_conversations_out_is_told_for_turns_without_a_reflection_go_nowhere(
    make_module: MakeModule, empty_url: str
) -> None:
    ask(empty_url, turns_table(empty_url, "memories", **exact(empty_url)))
    module = make_module(empty_url, tables={"conversations": None})
    health = module.health()["database"]
    (only,) = health["misfits"]
    assert (health["status"], only["setting"], only["fatal"]) == ("ok", "tables.conversations", False)
    assert "without a reflection" in only["problem"]
