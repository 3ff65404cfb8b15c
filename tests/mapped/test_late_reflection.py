"""A reflection that comes after its turn: the same row, the same latest turn, whatever the queue has done meanwhile."""

from __future__ import annotations

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import as_json, ask, count, rows, turns_table
from tests.servers.redis import client
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import Conflict

QUEUE = "threadkeep:{turns}:queue"
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


def reflected(module: MemoryModule, conversation: str = "c1") -> list[tuple[str, bool]]:
    while module.flush_once():
        pass
    found = module.load_long_term(conversation)
    return [(turn["user_message"], turn["reflection"] == KEPT) for turn in found]


@pytest.mark.parametrize("flushed", [True, False], ids=["after-the-flush", "before-the-flush"])
def test_the_row_that_gets_it_is_that_of_the_latest_turn_whichever_process_stored_it(
    make_module: MakeModule, sql_url: str, flushed: bool
) -> None:
    a, b = make_module(sql_url), make_module(sql_url)
    a.store_conversation("c1", "u1", "one", "ok", None)
    b.store_conversation("c1", "u1", "two", "ok", None)
    if flushed:
        a.flush_once()
    a.store_reflection("c1", "u1", LATE)
    latest = a.load_recent_context("c1")
    assert latest is not None
    assert (latest["user_msg"], latest["reflection"]) == ("two", KEPT)
    assert reflected(a) == [("one", False), ("two", True)]


def test_after_a_restart_the_turn_may_still_be_in_the_queue(make_module: MakeModule, sql_url: str) -> None:
    before = make_module(sql_url)
    before.store_conversation("c1", "u1", "one", "ok", None)
    before.flush_once()
    before.store_conversation("c1", "u1", "two", "ok", None)
    before.close()
    after = make_module(sql_url)
    after.store_reflection("c1", "u1", LATE)
    assert reflected(after) == [("one", False), ("two", True)]


@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None], ids=["keyed", "keyless"])
def test_a_reflection_that_is_stored_before_its_turn_is_not_taken_back_by_it(
    make_module: MakeModule, empty_url: str, redis_url: str, key: str | None
) -> None:
    ask(empty_url, *(turns_table(empty_url, name, key=key) for name in ("conversations", "memories")))
    module = make_module(empty_url)
    module.store_conversation("c1", "u1", "one", "ok", None)
    with client(redis_url) as redis:
        ((first, _),) = redis.xrange(QUEUE)
        redis.xgroup_create(QUEUE, "archive", "0")
        redis.xreadgroup("archive", "slow", {QUEUE: ">"})  # another worker has the turn, and takes its time
        module.store_reflection("c1", "u1", LATE)
        assert module.flush_once() == 1
        redis.xclaim(QUEUE, "archive", "slow", 0, [first], idle=60_000)
    assert reflected(module) == [("one", True)]


def test_a_turn_gets_neither_the_time_nor_the_words_of_another(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    module.store_conversation("c1", "u1", "one", "ok", None)
    with client(redis_url) as redis:
        at = int(redis.get("threadkeep:turn-clock:c1").split()[0]) + 5
        redis.set("threadkeep:turn-clock:c1", f"{at} {'0' * 40}")  # the time of a turn that is not shown
    module.store_reflection("c1", "u1", LATE)
    assert reflected(module) == [("one", True)]
    assert count(sql_url) == 1


def test_a_store_that_was_refused_to_another_user_leaves_the_latest_turn_what_it_is(
    make_module: MakeModule, sql_url: str
) -> None:
    a, b, c = make_module(sql_url), make_module(sql_url), make_module(sql_url)
    a.store_conversation("c1", "u1", "one", "ok", None)
    with pytest.raises(Conflict):
        b.store_conversation("c1", "u2", "two", "ok", None)
    c.store_reflection("c1", "u1", LATE)
    assert reflected(c) == [("one", True)]


def test_a_turn_that_was_only_kept_short_term_leaves_the_row_before_it_alone(module: MemoryModule) -> None:
    module.store_conversation("c1", "u1", "one", "ok", None)
    module.store_short_term("c1", "u1", "two", "ok", None)
    module.store_reflection("c1", "u1", LATE)
    assert reflected(module) == [("one", False)]
