"""`threadkeep worker` as it really runs: processes, signals, servers that go away and come back."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.contract.sql_statements import execute
from tests.servers.redis import client as redis_client
from tests.servers.redis_cluster import RedisCluster
from tests.servers.waiting import wait_until
from tests.service.running import COMMAND, clean_environment
from tests.service.running_worker import RunningWorker
from tests.service.stores import PATIENT, Servers, say, spoken, talk, whole
from threadkeep import SyncMemory, UserMessage, open_worker

SECONDS = 60


def flushed(memory: SyncMemory) -> None:
    memory.flushed(SECONDS)


@pytest.mark.parametrize("servers", ["on_postgres", "on_mariadb"])
def test_a_worker_drains_what_a_library_process_queued(
    tmp_path: Path, servers: str, request: pytest.FixtureRequest
) -> None:
    stores: Servers = request.getfixturevalue(servers)
    with stores.memory() as memory:
        receipts = say(memory, 60, talks=3)
        assert stores.stored() == 0
        with RunningWorker(tmp_path, stores.sql.url, stores.redis.url, "--batch", "7") as worker:
            flushed(memory)
            assert worker.stop() == 0

    assert {receipt.status for receipt in receipts} == {"queued"}
    with stores.archive() as archive:
        assert whole(archive, talks=3) == spoken(60, talks=3)


@pytest.mark.parametrize("polite_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_signal_leaves_nothing_claimed(
    tmp_path: Path, on_postgres: Servers, polite_signal: signal.Signals
) -> None:
    with on_postgres.memory() as memory:
        say(memory, 300)
        with RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url, "--batch", "5") as worker:
            wait_until(lambda: on_postgres.stored() > 0, seconds=SECONDS, what="the first batch is stored")
            assert worker.stop(polite_signal) == 0
        lag = memory.health().lag

    assert lag is not None
    assert lag.claimed == 0
    assert lag.entries + on_postgres.stored() == 300
    assert "Traceback" not in worker.log.read_text()


def test_the_log_tells_the_lag_as_numbers_and_never_a_text(tmp_path: Path, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        say(memory, 10)
        with RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url) as worker:
            flushed(memory)
            wait_until(
                lambda: bool(worker.lags()) and worker.lags()[-1]["entries"] == 0, seconds=SECONDS, what="no lag"
            )

    told = worker.lags()[-1]
    assert (told["worker"], told["journal"], told["dead"], told["oldest_seconds"]) == (worker.name, "ok", 0, 0)
    assert "text" not in worker.log.read_text()


def test_two_workers_share_one_journal(tmp_path: Path, on_postgres: Servers) -> None:
    places = on_postgres.sql.url, on_postgres.redis.url
    with (
        on_postgres.memory() as memory,
        RunningWorker(tmp_path / "one", *places, "--batch", "3") as one,
        RunningWorker(tmp_path / "two", *places, "--batch", "3") as two,
    ):
        say(memory, 200, talks=5)
        flushed(memory)
        assert (one.stop(), two.stop()) == (0, 0)
    with on_postgres.archive() as archive:
        assert whole(archive, talks=5) == spoken(200, talks=5)


def test_what_a_killed_worker_held_is_taken_over(tmp_path: Path, on_postgres: Servers) -> None:
    places = on_postgres.sql.url, on_postgres.redis.url
    with on_postgres.memory() as memory:
        say(memory, 40)
        on_postgres.own_sql.kill()  # so that the worker is held up with entries in its hands
        with RunningWorker(tmp_path / "one", *places) as worker:
            wait_until(lambda: _claimed(memory) > 0, seconds=SECONDS, what="entries are claimed")
            assert worker.stop(signal.SIGKILL) == -signal.SIGKILL
        on_postgres.own_sql.restart()
        with RunningWorker(tmp_path / "two", *places):
            flushed(memory)
    with on_postgres.archive() as archive:
        assert whole(archive) == spoken(40)


def _claimed(memory: SyncMemory) -> int:
    lag = memory.health().lag
    return 0 if lag is None else lag.claimed


@pytest.mark.parametrize("servers", ["on_postgres", "on_mariadb"])
def test_appends_go_on_while_the_archive_is_away_and_are_drained_when_it_is_back(
    tmp_path: Path, servers: str, request: pytest.FixtureRequest
) -> None:
    stores: Servers = request.getfixturevalue(servers)
    with stores.memory() as memory, RunningWorker(tmp_path, stores.sql.url, stores.redis.url) as worker:
        say(memory, 20)
        flushed(memory)
        stores.own_sql.kill()
        away = say(memory, 40, first=20)
        during = memory.health()
        stores.own_sql.restart()
        flushed(memory)
        after = memory.health()
        assert worker.stop() == 0

    assert {receipt.status for receipt in away} == {"queued"}
    assert (during.status, during.stores) == ("degraded", {"redis": "ok", "archive": "away"})
    assert after.status == "ok"
    assert after.lag is not None
    assert after.lag.dead == 0
    with stores.archive() as archive:
        assert whole(archive) == spoken(60)


def test_a_process_starts_and_appends_while_the_archive_is_away(tmp_path: Path, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        say(memory, 1)
    on_postgres.own_sql.kill()

    with on_postgres.memory() as memory:
        receipts = say(memory, 9, first=1)
        assert memory.health().stores == {"redis": "ok", "archive": "away"}
        with RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url):  # starts all the same
            on_postgres.own_sql.restart()
            flushed(memory)
        assert whole(memory) == spoken(10)

    assert {receipt.status for receipt in receipts} == {"queued"}
    assert on_postgres.stored() == 10


def test_a_worker_waits_for_a_redis_that_is_away(tmp_path: Path, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        say(memory, 10)
    on_postgres.redis.kill()
    with RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url) as worker:
        wait_until(lambda: bool(worker.lags()), seconds=SECONDS, what="the worker has looked")
        assert worker.lags()[0]["journal"] == "away"
        on_postgres.redis.restart()
        wait_until(lambda: on_postgres.stored() == 10, seconds=SECONDS, what="all is stored")
        assert worker.stop() == 0


def test_a_poison_entry_is_parked_and_listed_without_its_text_and_the_rest_goes_through(
    tmp_path: Path, on_postgres: Servers
) -> None:
    with on_postgres.memory() as memory, RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url):
        say(memory, 5)
        flushed(memory)
        _forge_a_conflict(on_postgres, memory.history(talk(0)).messages[0].id)
        say(memory, 5, first=5)
        wait_until(lambda: _dead(memory) == 1, seconds=SECONDS, what="the entry is parked")
        flushed(memory)
        assert whole(memory) == spoken(10)

        listed = _dlq(tmp_path, on_postgres, "list")
        (letter,) = listed["letters"]
        assert (listed["total"], letter["conversation"], letter["messages"]) == (1, "c0", 1)
        assert "id" in letter["reason"]
        assert "forged" not in json.dumps(listed)


def test_a_replayed_entry_reaches_the_archive_once_its_cause_is_gone(tmp_path: Path, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory, RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url):
        memory.append(talk(0), [UserMessage("first", id="m1", language="en")])
        flushed(memory)
        refusing = "ALTER TABLE tk_messages ADD CONSTRAINT unwanted CHECK (content <> 'forged') NOT VALID"
        asyncio.run(execute(on_postgres.sql.url, refusing))
        _forge_a_conflict(on_postgres, "x1")
        wait_until(lambda: _dead(memory) == 1, seconds=SECONDS, what="the entry is parked")
        (letter,) = _dlq(tmp_path, on_postgres, "list")["letters"]
        asyncio.run(execute(on_postgres.sql.url, "ALTER TABLE tk_messages DROP CONSTRAINT unwanted"))

        assert _dlq(tmp_path, on_postgres, "replay", letter["id"], "--yes") == {"asked": 1, "moved": 1}
        flushed(memory)
        with on_postgres.archive() as archive:
            assert whole(archive) == [["first", "forged"]]


def test_dead_letters_are_dropped_all_at_once_and_only_when_confirmed(tmp_path: Path, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        say(memory, 1)
        with redis_client(on_postgres.redis.url) as redis:
            for _ in range(3):
                redis.xadd(_journal_key(redis), {"v": "1", "scope": "nonsense"})
        with RunningWorker(tmp_path, on_postgres.sql.url, on_postgres.redis.url):
            wait_until(lambda: _dead(memory) == 3, seconds=SECONDS, what="the entries are parked")
        refused = _run(tmp_path, "dlq", "drop", "--all", "--json", "--redis", on_postgres.redis.url)
        assert refused.returncode == 1
        assert json.loads(refused.stderr)["field"] == "--yes"
        assert _dlq(tmp_path, on_postgres, "drop", "--all", "--yes") == {"asked": 3, "moved": 3}
        assert _dlq(tmp_path, on_postgres, "list") == {"total": 0, "letters": []}


def _forge_a_conflict(servers: Servers, id: str) -> None:
    """An entry whose `seq` is taken, which does no harm, and whose id another message may have."""
    entry = {
        "v": "1",
        "scope": json.dumps(["shop", "u42", "c0"]),
        "generation": "0",
        "key": "",
        "payload": "00" * 16,
        "receipt": json.dumps({"status": "queued", "seq": 1, "kept": [id]}),
        "messages": json.dumps(
            [{"seq": 1, "id": id, "role": "user", "content": "forged", "ts": "2026-01-01T00:00:00+00:00"}]
        ),
    }
    with redis_client(servers.redis.url) as redis:
        redis.xadd(_journal_key(redis), entry)


def _journal_key(redis: object) -> bytes:
    (key,) = [key for key in redis.scan_iter(_type="stream") if b"dead" not in key]  # pyright: ignore
    return key


def _dead(memory: SyncMemory) -> int:
    lag = memory.health().lag
    return 0 if lag is None else lag.dead


def _run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=clean_environment(folder, **environment),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def _dlq(folder: Path, servers: Servers, *arguments: str) -> dict[str, object]:
    ended = _run(folder, "dlq", *arguments, "--json", "--redis", servers.redis.url)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_wrong_password_ends_a_worker_at_once_and_names_what_to_correct(tmp_path: Path, on_postgres: Servers) -> None:
    redis, sql = on_postgres.redis.url, on_postgres.sql.url
    wrong_redis = redis.replace("redis://", "redis://ann:hunter2@")
    wrong_sql = sql.replace(":loopback-only@", ":hunter2@")
    for url, hot, told in [(sql, wrong_redis, "REDIS_URL"), (wrong_sql, redis, "password")]:
        ended = _run(tmp_path, "worker", "--url", url, "--redis", hot)
        assert ended.returncode == 1
        assert told in ended.stderr
        assert "hunter2" not in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_worker_without_a_redis_or_with_a_wrong_url_says_which_setting(tmp_path: Path) -> None:
    for arguments in ((), ("--redis", "http://somewhere")):
        ended = _run(tmp_path, "worker", "--json", *arguments)
        assert ended.returncode == 1
        assert json.loads(ended.stderr)["field"] == "REDIS_URL"
    assert list(tmp_path.iterdir()) == []


def test_a_worker_drains_every_partition_of_a_cluster(
    tmp_path: Path, on_postgres: Servers, redis_cluster: RedisCluster
) -> None:
    redis_cluster.wipe()
    url = redis_cluster.url
    with SyncMemory(on_postgres.sql.url, redis=url, worker=False, settings=PATIENT) as memory:
        say(memory, 60, talks=12)
        with RunningWorker(tmp_path, on_postgres.sql.url, url) as worker:
            flushed(memory)
            assert worker.stop() == 0
    with on_postgres.archive() as archive:
        assert whole(archive, talks=12) == spoken(60, talks=12)


async def test_a_library_may_run_a_worker_too(on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        say(memory, 10)
    async with open_worker(on_postgres.sql.url, redis=on_postgres.redis.url) as worker:
        assert await worker.drain() == 10
        assert (await worker.lag()).entries == 0
    assert on_postgres.stored() == 10
