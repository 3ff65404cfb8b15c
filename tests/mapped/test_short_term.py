"""The latest turn of a conversation in Redis: its key, its value, its life, and whose it is."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.test_privacy import everything_in
from tests.servers.redis import client
from tests.servers.waiting import wait_until
from threadkeep import compat
from threadkeep.compat import reflection
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import Conflict, InvalidInput, InvalidSetting, StoreUnavailable
from threadkeep.models.tokens import decode
from threadkeep.scope import Scope
from threadkeep.sessions.redis.scripts import Keys

REFLECTION = {"summary": "訂房失敗", "causes": ["日期已滿", "未付訂金"]}
UNUSED = "postgresql://nobody@127.0.0.1:1/none"


@pytest.fixture
def short(make_module: MakeModule) -> MemoryModule:
    return make_module(UNUSED, {"memory_redis_ttl_seconds": 3_600})


def test_what_was_stored_short_term_is_loaded_as_recent_context(short: MemoryModule) -> None:
    before = int(time.time())
    short.store_short_term("c1", "u1", "你好 🙂", "hello", REFLECTION)
    found = short.load_recent_context("c1")
    assert found is not None
    assert list(found) == ["user_msg", "assistant_msg", "reflection", "token_data", "user_id", "ts"]
    assert (found["user_msg"], found["assistant_msg"], found["user_id"]) == ("你好 🙂", "hello", "u1")
    assert found["reflection"] == REFLECTION
    assert set(found["token_data"]) == {"user", "assistant", "reflection"}
    assert decode(found["token_data"]["user"]) == "你好 🙂"
    assert before <= found["ts"] <= time.time()
    assert type(found["ts"]) is int


def test_the_key_is_the_one_an_operator_expects_and_lives_as_long_as_the_setting_says(
    short: MemoryModule, redis_url: str
) -> None:
    short.store_short_term("c1", "u1", "hi", None, None)
    with client(redis_url) as redis:
        assert json.loads(redis.get("conv:c1:latest"))["assistant_msg"] is None
        assert 3_590 < redis.ttl("conv:c1:latest") <= 3_600


def test_nothing_stored_is_nothing_loaded(short: MemoryModule, redis_url: str) -> None:
    assert short.load_recent_context("unknown") is None
    with client(redis_url) as redis:
        redis.set("conv:odd:latest", "no json")
    assert short.load_recent_context("odd") is None


def test_a_conversation_of_another_user_is_refused_and_left_as_it_is(short: MemoryModule) -> None:
    short.store_short_term("c1", "u1", "mine", "yes", None)
    for store in (short.store_short_term, short.store_conversation):
        with pytest.raises(Conflict, match="another user_id"):
            store("c1", "u2", "not mine", "no", None)
    short.store_short_term("c1", "u1", "mine again", "yes", None)
    assert short.load_recent_context("c1") | {"ts": 0, "token_data": {}} == {
        "user_msg": "mine again",
        "assistant_msg": "yes",
        "reflection": None,
        "token_data": {},
        "user_id": "u1",
        "ts": 0,
    }
    assert short.health()["redis"] == {"status": "ok", "queued": 0, "parked": 0, "oldest_seconds": 0}


def test_personal_data_is_masked_before_the_first_write(short: MemoryModule, redis_url: str) -> None:
    told = {"summary": "wrote to ann@example.org", "causes": ["card 4111 1111 1111 1111"]}
    short.store_conversation("c1", "u1", "I am ann@example.org", "call +48 601 234 567", told)
    kept = everything_in(redis_url)
    assert b"ann@example" not in kept
    assert b"4111 1111" not in kept
    found = short.load_recent_context("c1")
    assert found is not None
    assert found["reflection"]["summary"] == "wrote to [REDACTED:EMAIL]"
    assert decode(found["token_data"]["user"]) == "I am [REDACTED:EMAIL]"


async def test_inside_a_running_loop_it_returns_at_once_and_reads_its_own_writes(short: MemoryModule) -> None:
    for number in range(20):
        short.store_conversation("c1", "u1", f"turn {number}", "ok", None)
    found = await asyncio.to_thread(short.load_recent_context, "c1")
    assert found is not None
    assert found["user_msg"] == "turn 19"
    short.load_recent_context("c1")  # and raises nothing here either


async def test_a_redis_that_is_away_holds_up_no_loop_and_breaks_no_caller(caplog: pytest.LogCaptureFixture) -> None:
    away = MemoryModule(None, "redis://127.0.0.1:1/0", UNUSED)
    began = time.monotonic()
    away.store_conversation("c1", "u1", "hi", "ho", None)
    assert away.load_recent_context("c1") is None
    assert time.monotonic() - began < 5
    await asyncio.to_thread(away.close)
    assert "a turn was not stored" in caplog.text


async def test_a_redis_that_never_answers_holds_up_a_loop_once_and_not_at_every_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are taken, words are not
        module = MemoryModule(None, f"redis://127.0.0.1:{silent.getsockname()[1]}/0", UNUSED)
        assert [module.load_recent_context("c1") for _ in range(20)] == [None] * 20
        assert caplog.text.count("the latest turn could not be read") == 1
        await asyncio.to_thread(module.close)


def test_outside_a_loop_the_caller_is_told() -> None:
    away = MemoryModule(None, "redis://127.0.0.1:1/0", UNUSED)
    with pytest.raises(StoreUnavailable):
        away.store_conversation("c1", "u1", "hi", "ho", None)
    away.close()


@pytest.mark.parametrize("name", ["conversation_id", "user_id"])
@pytest.mark.parametrize("value", [None, "", 7, "line\nbreak"])
def test_a_missing_or_odd_id_is_named(short: MemoryModule, name: str, value: Any) -> None:
    ids = {"conversation_id": "c1", "user_id": "u1"} | {name: value}
    with pytest.raises(InvalidInput) as caught:
        short.store_conversation(**ids, user_msg="hi", assistant_msg="ho", reflection=None)
    assert caught.value.field == name


def test_without_a_redis_the_setting_is_named() -> None:
    module = MemoryModule(None, None, UNUSED)
    with pytest.raises(InvalidSetting, match="REDIS_URL"):
        module.store_short_term("c1", "u1", "hi", "ho", None)
    module.close()


def test_a_disabled_module_does_nothing_and_asks_for_nothing(make_module: MakeModule, redis_url: str) -> None:
    module = make_module("sqlite:///no-server.db", enabled=False)
    module.store_short_term("c1", "u1", "hi", "ho", None)
    module.store_conversation("c1", "u1", "hi", "ho", REFLECTION)
    module.store_conversation("", "", None, None, None)
    module.start_worker()
    assert module.load_recent_context("c1") is None
    assert (module.persist_long_term([{}]), module.flush_once(), module.parked()) == (0, 0, [])
    assert module.health() == {"enabled": False, "status": "disabled"}
    with client(redis_url) as redis:
        assert redis.dbsize() == 0


def test_the_functions_have_the_signatures_that_routes_call() -> None:
    turn = ["conversation_id", "user_id", "user_msg", "assistant_msg", "reflection"]
    expected = {
        "store_short_term": turn,
        "store_conversation": turn,
        "load_recent_context": ["conversation_id"],
        "persist_long_term": ["records"],
        "validate_and_normalize": ["payload"],
        "tokenize_text": ["text"],
        "pack_token_record": ["user", "assistant", "reflection_json"],
    }
    for place in (reflection, compat):
        assert {name: list(inspect.signature(getattr(place, name)).parameters) for name in expected} == expected


def test_importing_the_functions_loads_no_driver() -> None:
    drivers = "{'redis', 'sqlalchemy', 'asyncpg', 'asyncmy', 'tiktoken'}"
    asked = f"import sys, threadkeep.compat; print(sorted({drivers} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_functions_take_their_module_from_the_environment(monkeypatch: pytest.MonkeyPatch, redis_url: str) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("DATABASE_URL", UNUSED)
    reflection.close()
    try:
        reflection.store_conversation(
            conversation_id="c1", user_id="u1", user_msg="hi", assistant_msg="ho", reflection={"summary": "met"}
        )
        found = reflection.load_recent_context("c1")
        assert found is not None
        assert found["reflection"] == {"summary": "met", "causes": []}
        assert reflection.health()["redis"]["queued"] == 1
    finally:
        reflection.close()


def test_an_exit_waits_for_what_a_loop_left_behind(short: MemoryModule, redis_url: str) -> None:
    async def leave() -> None:
        short.store_conversation("c1", "u1", "last words", "ok", None)

    asyncio.run(leave())
    short.close()
    with client(redis_url) as redis:
        wait_until(lambda: bool(redis.exists("conv:c1:latest")), seconds=5, what="the turn is kept")
        assert redis.xlen("threadkeep:{turns}:queue") == 1


def test_no_id_reaches_a_latest_turn_of_the_service(short: MemoryModule, redis_url: str) -> None:
    theirs = [Scope("default", "ann", "s1"), Scope("shop", "bob", "s2")]
    keys = [key for scope in theirs for key in (Keys().latest(scope), Keys(cluster=True).latest(scope))]
    with client(redis_url) as redis:
        for key in keys:
            redis.set(key, json.dumps({"user_msg": "private", "user_id": "ann"}))
        for key in keys:
            conversation = key.removeprefix("conv:").removesuffix(":latest")
            assert short.load_recent_context(conversation) is None
            short.store_short_term(conversation, "u1", "ours", "ok", None)
            found = short.load_recent_context(conversation)
            assert found is not None
            assert found["user_msg"] == "ours"
            assert json.loads(redis.get(key))["user_msg"] == "private"


async def test_a_store_behind_the_caller_says_which_setting_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    module = MemoryModule(None, None, UNUSED)
    module.start_worker()
    module.store_conversation("c1", "u1", "private words", "ho", None)
    await asyncio.to_thread(module.close)
    assert "a turn was not stored: REDIS_URL: is not set" in caplog.text
    assert "the worker has stopped: REDIS_URL: is not set" in caplog.text
    assert "private words" not in caplog.text


@pytest.mark.parametrize("records", [None, 7, "abc", [None], ["abc"], [1]], ids=repr)
def test_records_that_are_none_are_named(short: MemoryModule, records: Any) -> None:
    with pytest.raises(InvalidInput, match="records") as caught:
        short.persist_long_term(records)
    assert caught.value.field == ("records[0]" if isinstance(records, list) else "records")


@pytest.mark.parametrize("thought", [None, "abc", 7], ids=repr)
def test_a_reflection_that_is_none_is_named(short: MemoryModule, thought: Any) -> None:
    with pytest.raises(InvalidInput, match="reflection"):
        short.store_reflection("c1", "u1", thought)
    with pytest.raises(InvalidInput, match="user_id"):
        short.store_reflection("c1", "", {"summary": "met"})


@pytest.mark.parametrize("number", [-1, "x", 1.5, True], ids=repr)
def test_numbers_of_turns_that_are_none_are_named(short: MemoryModule, number: Any) -> None:
    with pytest.raises(InvalidInput, match="batch"):
        short.flush_once(number)
    with pytest.raises(InvalidInput, match="limit"):
        short.load_long_term("c1", limit=number)
    with pytest.raises(InvalidInput, match="most"):
        short.parked(number)
