"""From the queue to the tables: batches, bad turns, outages, and workers that are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import ask, count, rows, turns_table
from tests.servers.redis import client
from tests.servers.waiting import wait_until
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import InvalidSetting
from threadkeep.journal.consumer import RETRY_SECONDS

QUEUE = "threadkeep:{turns}:queue"
REFLECTION = {"summary": "met", "causes": []}


def store(module: MemoryModule, number: int, conversation: str = "c1") -> None:
    module.store_conversation(conversation, "u1", f"question {number}", f"answer {number}", REFLECTION)


def test_a_flush_takes_no_more_than_the_batch_size_and_says_how_many(make_module: MakeModule, sql_url: str) -> None:
    module = make_module(sql_url, {"memory_flush_batch_size": 10})
    for number in range(25):
        store(module, number)
    assert [module.flush_once() for _ in range(4)] == [10, 10, 5, 0]
    assert (count(sql_url), count(sql_url, "memories")) == (25, 25)
    assert module.health()["redis"] == {"status": "ok", "queued": 0, "parked": 0, "oldest_seconds": 0}


def test_times_rise_within_a_conversation_so_the_turns_come_back_in_order(module: MemoryModule, sql_url: str) -> None:
    for number in range(30):
        store(module, number)
    assert module.flush_once() == 30
    found = module.load_long_term("c1", limit=30)
    assert [turn["user_message"] for turn in found] == [f"question {number}" for number in range(30)]
    assert len({turn["created_at"] for turn in found}) == 30


def test_a_worker_inside_the_process_empties_the_queue_until_it_is_closed(module: MemoryModule, sql_url: str) -> None:
    module.start_worker()
    for number in range(10):
        store(module, number)
    wait_until(lambda: count(sql_url) == 10, seconds=10, what="the turns are stored")


def test_a_refused_turn_is_tried_again_after_one_two_and_four_seconds() -> None:
    assert RETRY_SECONDS == (1, 2, 4)


def test_one_bad_turn_is_parked_with_its_reason_and_the_others_go_through(
    make_module: MakeModule, empty_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.01, 0.01, 0.01))
    ask(empty_url, turns_table(empty_url, "conversations", conversation_id="varchar(8) NOT NULL"))
    module = make_module(empty_url, tables={"memories": None})
    store(module, 1)
    store(module, 2, "much-too-long-for-it")
    store(module, 3)
    with client(redis_url) as redis:
        redis.xadd(QUEUE, {"record": "no json"})
    assert module.flush_once() == 2
    assert count(empty_url) == 2
    reasons = sorted(parked["reason"] for parked in module.parked())
    assert "columns_map.conversation_id" in reasons[0]
    assert "holds 8" in reasons[0]
    assert reasons[1] == "is not a JSON object"
    ask(empty_url, _widened(empty_url))
    again = make_module(empty_url, tables={"memories": None})
    assert again.replay_parked() == 2
    assert again.flush_once() == 1
    assert count(empty_url) == 3


def test_a_turn_that_is_nested_too_deep_to_be_read_ends_no_worker(
    module: MemoryModule, sql_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.01, 0.01, 0.01))
    with client(redis_url) as redis:
        redis.xadd(QUEUE, {"record": '{"reflection":' * 100_000})
    store(module, 1)
    assert module.flush_once() == 1
    assert [parked["reason"] for parked in module.parked()] == ["is not a JSON object"]


def _widened(url: str) -> str:
    if url.startswith("postgres"):
        return "ALTER TABLE conversations ALTER conversation_id TYPE varchar(64)"
    return "ALTER TABLE conversations MODIFY conversation_id varchar(64) NOT NULL"


def test_a_mapping_that_does_not_fit_parks_nothing_and_loses_nothing(
    make_module: MakeModule, sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.01, 0.01, 0.01))
    ask(sql_url, "DROP TABLE memories")
    module = make_module(sql_url)
    store(module, 1)
    with pytest.raises(InvalidSetting, match="memories is not there"):
        module.flush_once()
    assert module.parked() == []
    ask(sql_url, turns_table(sql_url, "memories"))
    assert module.flush_once() == 1


def test_with_redis_away_a_turn_goes_straight_to_its_table(sql_url: str) -> None:
    module = MemoryModule(None, "redis://127.0.0.1:1/0", sql_url)
    store(module, 1)
    assert rows(sql_url, columns="conversation_id, user_id") == [("c1", "u1")]
    assert module.health()["status"] == "degraded"
    module.close()


WORKER = """
import sys
from threadkeep.compat.reflection import MemoryModule
config, redis_url, database_url = sys.argv[1:]
module = MemoryModule(config, redis_url, database_url, claim_after=0.2)
print("ready", flush=True)
while True:
    module.flush_once(7)
"""


@pytest.mark.slow
@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None], ids=["keyed", "keyless"])
def test_a_worker_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing(
    make_module: MakeModule, empty_url: str, redis_url: str, tmp_path: Path, key: str | None
) -> None:
    ask(empty_url, *(turns_table(empty_url, name, key=key) for name in ("conversations", "memories")))
    module = make_module(empty_url)
    for number in range(400):
        store(module, number, f"c{number % 5}")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({}))
    for kill in range(1, 6):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(config), redis_url, empty_url], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None
        with worker.stdout:
            assert worker.stdout.readline() == "ready\n"
            wait_until(lambda kill=kill: count(empty_url) >= kill * 40, seconds=30, what="it has stored some")
            worker.send_signal(signal.SIGKILL)
            worker.wait()

    def drained() -> bool:
        module.flush_once()
        return module.health()["redis"]["queued"] == 0

    wait_until(drained, seconds=30, what="the queue is empty")
    assert count(empty_url) == count(empty_url, "memories") == 400
    kept = [turn["user_message"] for talk in range(5) for turn in module.load_long_term(f"c{talk}", 100)]
    assert sorted(kept) == sorted(f"question {number}" for number in range(400))
    assert module.parked() == []


def test_turns_whose_worker_was_deleted_by_hand_are_stored_all_the_same(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    for number in range(3):
        store(module, number)
    with client(redis_url) as redis:
        redis.xgroup_create(QUEUE, "archive", "0")
        redis.xreadgroup("archive", "deleted", {QUEUE: ">"})
        redis.xgroup_delconsumer(QUEUE, "archive", "deleted")
    assert (module.flush_once(), count(sql_url)) == (3, 3)
