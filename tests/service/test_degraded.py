"""The service on Redis and PostgreSQL while one of them, or both, are away."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.servers.redis import RedisServer
from tests.servers.redis import client as redis_client
from tests.servers.waiting import wait_until
from tests.service.running import RunningService
from tests.service.stores import Servers
from tests.service.talking import TALK, said
from tests.unit.cli.conftest import Command, store, threadkeep
from threadkeep import Scope, SyncMemory, UserMessage

__all__ = ["store", "threadkeep"]
SECONDS = 60
QUICK = {"THREADKEEP_REDIS_TIMEOUT_SECONDS": "2", "THREADKEEP_STORE_TIMEOUT_SECONDS": "5"}


def append(client: httpx.Client, text: str) -> str:
    answer = client.post("/v1/memory/append", json={"scope": TALK, "events": [said(text, language="en")]})
    assert answer.status_code == 200, answer.text
    return answer.json()["status"]


def ready(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/readyz")
    return answer.json() | {"code": answer.status_code}


def contents(client: httpx.Client) -> list[str]:
    messages = client.get("/v1/memory/history", params=TALK | {"limit": 1_000}).json()["messages"]
    return [message["content"] for message in messages]


def until_ok(client: httpx.Client) -> None:
    wait_until(lambda: ready(client)["status"] == "ok", seconds=SECONDS, what="/readyz is ok again")


@pytest.fixture
def serve(tmp_path: Path, on_postgres: Servers) -> Callable[[], RunningService]:
    return lambda: RunningService(tmp_path, on_postgres.sql.url, "--redis", on_postgres.redis.url, **QUICK)


def test_all_is_ok_while_both_answer(serve: Callable[[], RunningService]) -> None:
    with serve() as service, service.client() as client:
        assert append(client, "hello") == "queued"
        found = ready(client)

    assert (found["code"], found["status"], found["stores"]) == (200, "ok", {"redis": "ok", "archive": "ok"})
    assert found["lag"].keys() == {"entries", "claimed", "dead", "oldest_seconds"}


def test_the_urls_of_the_environment_are_enough(tmp_path: Path, on_postgres: Servers) -> None:
    urls = {"DATABASE_URL": on_postgres.sql.url, "REDIS_URL": on_postgres.redis.url}
    with RunningService(tmp_path, None, **urls) as service, service.client() as client:
        assert append(client, "hello") == "queued"
        assert ready(client)["stores"] == {"redis": "ok", "archive": "ok"}


def test_a_redis_that_dies_leaves_the_service_degraded_and_comes_back_by_itself(
    serve: Callable[[], RunningService], on_postgres: Servers
) -> None:
    with serve() as service, service.client() as client:
        before = [append(client, f"before {n}") for n in range(3)]
        on_postgres.redis.kill()
        during = [append(client, f"during {n}") for n in range(3)]
        seen = ready(client)
        told = contents(client)
        on_postgres.redis.restart()
        until_ok(client)
        wait_until(lambda: append(client, "after") == "queued", seconds=SECONDS, what="Redis is used again")
        whole = contents(client)
        assert service.stop() == 0

    assert (before, during) == (["queued"] * 3, ["stored"] * 3)
    assert (seen["code"], seen["status"], seen["stores"]) == (200, "degraded", {"redis": "away", "archive": "ok"})
    assert seen["lag"] is None
    assert told[-3:] == ["during 0", "during 1", "during 2"]
    assert whole[:6] == [*(f"before {n}" for n in range(3)), *(f"during {n}" for n in range(3))]
    complaints = [line for line in service.logged() if "Redis does not answer" in line.get("message", "")]
    assert len(complaints) == 1


def test_a_sql_that_dies_leaves_the_service_degraded_and_no_append_fails(
    serve: Callable[[], RunningService], on_postgres: Servers
) -> None:
    with serve() as service, service.client() as client:
        append(client, "before")
        on_postgres.own_sql.kill()
        during = [append(client, f"during {n}") for n in range(10)]
        seen = ready(client)
        told = contents(client)
        on_postgres.own_sql.restart()
        until_ok(client)
        wait_until(lambda: ready(client)["lag"]["entries"] == 0, seconds=SECONDS, what="the journal is drained")
        assert service.stop() == 0

    assert during == ["queued"] * 10
    assert (seen["code"], seen["status"], seen["stores"]) == (200, "degraded", {"redis": "ok", "archive": "away"})
    assert told == ["before", *(f"during {n}" for n in range(10))]
    assert on_postgres.stored() == 11


def test_a_talk_that_begins_while_sql_is_away_is_taken_and_stored_later(
    serve: Callable[[], RunningService], on_postgres: Servers
) -> None:
    new = TALK | {"user": "a new one", "conversation": "begun in the dark"}
    with serve() as service, service.client() as client:
        append(client, "before")
        on_postgres.own_sql.kill()
        body = {"scope": new, "events": [said("xin chào, tôi muốn đặt phòng")]}
        taken = [client.post("/v1/memory/append", json=body) for _ in range(3)]
        told = client.get("/v1/memory/history", params=new).json()["messages"]
        on_postgres.own_sql.restart()
        until_ok(client)
        wait_until(lambda: ready(client)["lag"]["entries"] == 0, seconds=SECONDS, what="the journal is drained")
        assert service.stop() == 0

    assert [(answer.status_code, answer.json().get("status")) for answer in taken] == [(200, "queued")] * 3
    assert len(told) == 3
    assert on_postgres.stored() == 4


def test_with_neither_store_it_is_not_ready_and_says_so(
    serve: Callable[[], RunningService], on_postgres: Servers
) -> None:
    with serve() as service, service.client() as client:
        append(client, "before")
        on_postgres.redis.kill()
        on_postgres.own_sql.kill()
        refused = client.get("/readyz")
        assert client.get("/healthz").status_code == 200
        on_postgres.own_sql.restart()
        on_postgres.redis.restart()
        until_ok(client)
        assert contents(client) == ["before"]

    assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (
        503,
        "store_unavailable",
        True,
    )


def test_the_service_starts_while_either_store_is_away(
    serve: Callable[[], RunningService], on_postgres: Servers
) -> None:
    on_postgres.redis.kill()
    with serve() as service, service.client() as client:
        assert append(client, "without Redis") == "stored"
        assert ready(client)["status"] == "degraded"
    on_postgres.redis.restart()
    on_postgres.own_sql.kill()
    with serve() as service, service.client() as client:
        assert ready(client)["stores"] == {"redis": "ok", "archive": "away"}


def test_doctor_describes_both_servers_and_warns(threadkeep: Command, on_postgres: Servers) -> None:
    with on_postgres.memory() as memory:
        memory.append(Scope(**TALK), [UserMessage("hello")])
    ended = threadkeep("doctor", "--url", on_postgres.sql.url, "--redis", on_postgres.redis.url, "--json")

    report = ended.json
    assert ended.code == 0
    assert report["store"]["server"]["product"] == "PostgreSQL"
    assert report["store"]["server"]["schema"] == report["store"]["server"]["newest_schema"]
    assert report["store"]["server"]["pool_most"] == 20
    assert report["redis"]["version"].count(".") == 2
    assert report["health"]["lag"]["entries"] == 1
    assert report["redis"]["findings"] == []
    assert "loopback-only" not in json.dumps(report)


def test_doctor_warns_of_a_redis_that_may_lose_turns_and_fails_on_one_that_evicts(
    threadkeep: Command, store: str, new_redis: Any
) -> None:
    careless = new_redis(appendonly=True, appendfsync="everysec")
    ended = threadkeep("doctor", "--url", store, "--redis", careless.url, "--json")
    assert ended.code == 0
    assert any("appendfsync everysec" in line for line in ended.json["warnings"])

    evicting = new_redis(settings=["--maxmemory-policy", "allkeys-lru"])
    ended = threadkeep("doctor", "--url", store, "--redis", evicting.url)
    assert ended.code == 1
    assert "noeviction" in ended.stdout
    assert "Redis cannot be relied on." in ended.stdout


def test_doctor_names_a_redis_that_does_not_answer(threadkeep: Command, store: str, new_redis: Any) -> None:
    redis = new_redis()
    redis.kill()
    ended = threadkeep("doctor", "--url", store, "--redis", redis.url, "--json")

    assert ended.code == 1
    assert ended.json["store"]["status"] == "reachable"
    assert [one["code"] for one in ended.json["redis"]["findings"]] == ["unreachable"]


def killed(redis: RedisServer) -> None:
    redis.kill()


def frozen(redis: RedisServer) -> None:
    os.kill(redis.pid, signal.SIGSTOP)


def with_another_password(redis: RedisServer) -> None:
    with redis_client(redis.url) as administrator:
        administrator.config_set("requirepass", "another")
        administrator.client_kill_filter(_type="normal", skipme=True)


@pytest.mark.parametrize("broken", [killed, frozen, with_another_password])
def test_doctor_says_what_health_does_while_redis_is_unavailable(
    threadkeep: Command,
    store: str,
    new_redis: Any,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[RedisServer], None],
) -> None:
    """The archive has a Redis, so a process without any may not write; this one was given that Redis."""
    monkeypatch.setenv("THREADKEEP_REDIS_TIMEOUT_SECONDS", "0.5")
    redis = new_redis()
    with SyncMemory(store, redis=redis.url) as memory:
        memory.append(Scope(**TALK), [UserMessage("hello")])
        memory.flushed()
        broken(redis)
        told = memory.health().as_dict()
        ended = threadkeep("doctor", "--url", store, "--redis", redis.url, "--json")
        shown = threadkeep("doctor", "--url", store, "--redis", redis.url)
        if broken is frozen:
            os.kill(redis.pid, signal.SIGCONT)

    assert (told["status"], told["stores"]) == ("degraded", {"redis": "away", "archive": "ok"})
    assert (ended.code, ended.json["ok"], ended.json["health"]) == (1, False, told)
    assert ended.json["store"]["status"] == "reachable"
    assert "detach" not in ended.stdout
    assert "Redis cannot be relied on." in shown.stdout


def test_erase_export_and_stats_reach_what_is_still_in_redis(threadkeep: Command, on_postgres: Servers) -> None:
    places = ("--url", on_postgres.sql.url, "--redis", on_postgres.redis.url)
    with on_postgres.memory() as memory:
        memory.append(Scope(**TALK), [UserMessage("hello")])
        memory.append(Scope(TALK["tenant"], "other", "c1"), [UserMessage("good day")])
        assert threadkeep("stats", *places, "--json").json["queued_appends"] == 2

        erased = threadkeep("erase", *places, "--tenant", "shop", "--user", "u42", "--yes", "--json")
        exported = threadkeep("export", *places)
        assert erased.json["complete"] is True
        assert [json.loads(line)["user"] for line in exported.stdout.splitlines()] == ["other"]
        assert memory.history(Scope(**TALK)).messages == ()
