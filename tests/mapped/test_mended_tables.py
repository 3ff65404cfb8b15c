"""A table that is changed while the module runs: what was refused goes in once the table can hold it."""

from __future__ import annotations

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import ask, count, turns_table
from tests.mapped.test_table import turn
from threadkeep.errors import InvalidInput, InvalidSetting, StoreError

ONE_TABLE = {"tables": {"memories": None}}


def test_a_column_that_was_widened_takes_what_it_was_too_short_for(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", cid="varchar(10)"))
    module = make_module(empty_url, **ONE_TABLE)
    with pytest.raises(InvalidInput, match="widen the column"):
        module.persist_long_term([turn(1)])
    wider = "ALTER COLUMN cid TYPE" if empty_url.startswith("postgres") else "MODIFY cid"
    ask(empty_url, f"ALTER TABLE conversations {wider} varchar(100)")
    assert module.persist_long_term([turn(1)]) == 1


@pytest.mark.parametrize("empty_url", ["postgres"], indirect=True)  # MariaDB does not refuse to upsert without one
def test_an_index_that_went_away_costs_one_try(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", key="CONSTRAINT one UNIQUE (conversation_id, created_at)"))
    module = make_module(empty_url, **ONE_TABLE)
    module.persist_long_term([turn(1)])
    ask(empty_url, "ALTER TABLE conversations DROP CONSTRAINT one")
    with pytest.raises(StoreError):
        module.persist_long_term([turn(1)])
    assert module.persist_long_term([turn(1), turn(2)]) == 2
    assert count(empty_url) == 2


def test_a_column_that_must_be_given_all_at_once_is_named(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations"))
    module = make_module(empty_url, **ONE_TABLE)
    module.persist_long_term([turn(1)])
    default = " DEFAULT 1" if empty_url.startswith("postgres") else ""
    ask(empty_url, f"ALTER TABLE conversations ADD COLUMN extra integer{default} NOT NULL")
    if empty_url.startswith("postgres"):
        ask(empty_url, "ALTER TABLE conversations ALTER COLUMN extra DROP DEFAULT")
    with pytest.raises(StoreError):
        module.persist_long_term([turn(2)])
    with pytest.raises(InvalidSetting, match="extra must be given"):
        module.persist_long_term([turn(2)])
