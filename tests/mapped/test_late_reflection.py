"""A reflection that comes after its turn: the same row, the same latest turn, whatever the queue has done meanwhile."""

from __future__ import annotations

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import as_json, count, rows
from threadkeep.compat.memory_module import MemoryModule

LATE = {"summary": "asked for a pool, call +48 601 234 567", "causes": ["a hot day"]}
KEPT = {"summary": "asked for a pool, call [REDACTED:PHONE]", "causes": ["a hot day"]}


@pytest.mark.parametrize("flushed", [True, False], ids=["after-the-flush", "before-the-flush"])
def test_a_late_reflection_updates_the_row_of_its_turn_and_the_latest_turn(
    module: MemoryModule, sql_url: str, flushed: bool
) -> None:
    module.store_conversation("c1", "u1", "Is there a pool?", "Yes.", None)
    if flushed:
        module.flush_once()
        ((before,),) = rows(sql_url, columns="created_at")
    module.store_reflection("c1", "u1", LATE)
    latest = module.load_recent_context("c1")
    assert latest is not None
    assert latest["reflection"] == KEPT
    assert latest["user_msg"] == "Is there a pool?"
    while module.flush_once():
        pass
    assert count(sql_url) == 1
    ((reflection, created_at),) = rows(sql_url, columns="reflection, created_at")
    assert as_json(reflection) == KEPT
    if flushed:
        assert created_at == before
    (turn,) = module.load_long_term("c1")
    assert (turn["user_message"], turn["assistant_message"]) == ("Is there a pool?", "Yes.")
    assert turn["token_data"]["reflection"]


def test_another_process_finds_the_row_and_another_user_does_not(make_module: MakeModule, sql_url: str) -> None:
    first, second = make_module(sql_url), make_module(sql_url)
    first.store_conversation("c1", "u1", "Is there a pool?", "Yes.", None)
    first.flush_once()
    second.store_reflection("c1", "somebody-else", LATE)
    second.flush_once()
    assert rows(sql_url, columns="reflection") == [(None,)]
    second.store_reflection("c1", "u1", LATE)
    second.flush_once()
    ((reflection,),) = rows(sql_url, columns="reflection")
    assert as_json(reflection) == KEPT
    assert count(sql_url) == 1


def test_a_reflection_on_nothing_is_let_go(module: MemoryModule, sql_url: str) -> None:
    module.store_reflection("c1", "u1", LATE)
    assert module.flush_once() == 0
    assert count(sql_url) == 0
