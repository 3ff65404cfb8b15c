"""`threadkeep detach`: a Redis leaves its archive once its journal is empty."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis.cluster import RedisCluster as ClusterClient

from tests.servers.redis import RedisServer, client
from tests.servers.redis_cluster import RedisCluster
from tests.servers.server import Server
from threadkeep import HotStoreMismatch, ModelResponse, Scope, Settings, SyncMemory, UserMessage, open_memory
from threadkeep.cli.app import run
from threadkeep.compose.upkeep import detach

ANNA = Scope(user="anna", conversation="c1")


def memory(url: str, redis: str = "", durability: Any = "fast", **options: Any) -> SyncMemory:
    return SyncMemory(url, redis=redis, settings=Settings(durability=durability, embedder="none"), **options)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/archive.db"


def _detached(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["detach", *words, "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out if code == 0 else told.err)


def _told(url: str) -> list[str]:
    with memory(url) as opened:
        return [message.content for message in opened.history(ANNA).messages]


@pytest.mark.parametrize("servers", ["redis_server", "redis_cluster"])
def test_detaching_waits_for_the_journal_and_then_others_may_write(
    request: pytest.FixtureRequest, url: str, servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there: Server | RedisCluster = request.getfixturevalue(servers)
    redis = there.url
    there.wipe()
    with memory(url, redis, worker=False) as service:
        service.append(ANNA, [UserMessage("one")])
    code, problem = _detached(capsys, "--url", url, "--redis", redis)
    assert (code, problem["code"]) == (1, "conflict")
    assert "1 entries wait in the journal" in problem["detail"]
    with memory(url, redis) as service:
        service.append(ANNA, [UserMessage("two")])  # a refused attempt leaves all as it was
        service.flushed()
    code, done = _detached(capsys, "--url", url, "--redis", redis)
    assert (code, done["archive"], done["redis"], done["sessions"], done["durability"]) == (0, True, True, 1, "fast")
    assert _detached(capsys, "--url", url, "--redis", redis) == (
        0,
        {"address": None, "durability": None, "archive": False, "redis": False, "sessions": 0},
    )
    with memory(url) as bare:
        bare.append(ANNA, [UserMessage("three")])
    with memory(url, redis, "durable") as service:  # attached anew, in another mode; nothing is hidden by an old window
        service.append(ANNA, [UserMessage("four")])
        assert [message.content for message in service.history(ANNA).messages] == ["one", "two", "three", "four"]
        assert [message.seq for message in service.history(ANNA).messages] == [1, 2, 3, 4]
    with memory(url) as bare, pytest.raises(HotStoreMismatch):
        bare.append(ANNA, [UserMessage("five")])


def test_a_service_that_runs_on_attaches_again_with_its_next_turn(
    url: str, redis_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with memory(url, redis_server.url) as service:
        service.append(ANNA, [UserMessage("one")])
        service.flushed()
        assert _detached(capsys, "--url", url, "--redis", redis_server.url)[0] == 0
        with memory(url) as bare:
            bare.append(ANNA, [UserMessage("two")])
        service.append(ANNA, [UserMessage("three")])
        service.flushed()
        assert [message.content for message in service.history(ANNA).messages] == ["one", "two", "three"]
        with memory(url) as bare, pytest.raises(HotStoreMismatch):
            bare.append(ANNA, [UserMessage("four")])


def test_dead_letters_keep_a_redis_attached(url: str, redis_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with memory(url, redis_server.url) as service:
        service.append(ANNA, [UserMessage("one")])
        service.flushed()
    with client(redis_server.url) as redis:
        letter = redis.xadd("threadkeep:dead", {"v": "1"})
        try:
            code, problem = _detached(capsys, "--url", url, "--redis", redis_server.url)
        finally:
            redis.xdel("threadkeep:dead", letter)  # pyright: ignore[reportArgumentType]
    assert (code, problem["code"]) == (1, "conflict")
    assert "1 were given up on" in problem["detail"]


def test_another_redis_cannot_be_detached_and_a_lost_one_only_when_it_is_said(
    url: str, new_redis: Callable[..., RedisServer], capsys: pytest.CaptureFixture[str]
) -> None:
    gone = new_redis()
    with memory(url, gone.url) as service:
        service.append(ANNA, [UserMessage("one")])
        service.flushed()
    gone.stop()
    other = new_redis().url
    code, problem = _detached(capsys, "--url", url, "--redis", other)
    assert (code, problem["code"]) == (1, "hot_store_mismatch")
    assert "--lost" in problem["detail"]
    code, problem = _detached(capsys, "--url", url, "--lost")
    assert (code, problem["field"]) == (1, "--yes")
    assert _detached(capsys, "--url", url, "--lost", "--yes")[0] == 0
    with memory(url, other) as service:
        service.append(ANNA, [UserMessage("two")])
        service.flushed()
    assert _told(url) == ["one", "two"]


def test_no_redis_named_is_told(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with memory(url) as bare:
        bare.append(ANNA, [UserMessage("one")])
    code, problem = _detached(capsys, "--url", url)
    assert (code, problem["code"], problem["field"]) == (1, "invalid_setting", "REDIS_URL")


OTHERS = {  # what mapped mode, the rate limits and other applications keep in the same Redis
    "threadkeep:{turns}:queue": "a turn that waits for mapped mode",
    "threadkeep:turn-clock:c1": "1700000000000000 0a",
    "threadkeep:limits:caller:0a": "1",
    "sessions:theirs": '{"createdAt":"2024-01-01T00:00:00+00:00","messages":[{"role":"user","content":"theirs"}]}',
    "conv:theirs:latest": '{"user_msg":"theirs","user_id":"u7"}',
    "conv:@default:default:@theirs:latest": '{"user_msg":"theirs","user_id":"u7"}',
    "conv:@acme:theirs:c1:latest": "of another form",
}


@pytest.mark.parametrize("durability", ["fast", "durable"])
@pytest.mark.parametrize("servers", ["redis_server", "redis_cluster"])
async def test_nothing_of_the_archive_is_left_in_a_redis_that_was_detached(
    request: pytest.FixtureRequest, url: str, servers: str, durability: Any
) -> None:
    """An erasure made afterwards cannot reach that Redis any more."""
    there: Server | RedisCluster = request.getfixturevalue(servers)
    there.wipe()
    with RedisOfAnyKind(there) as redis:
        for key, value in OTHERS.items():
            redis.set(key, value)
        scopes = [Scope("default", "default", "plain"), Scope("acme", "anna:x", "c1"), Scope("acme", "bert", "@[c2]")]
        settings = Settings(durability=durability, embedder="none")
        async with open_memory(url, redis=there.url, settings=settings) as service:
            for number, scope in enumerate(scopes):
                await service.append(scope, [UserMessage("a canary"), ModelResponse("an answer")], key=f"k{number}")
                await service.append(scope, [UserMessage("another canary")])
                await service.scratch.put(scope, "tool.temp.name", "a scratch canary", 600)
            await service.flushed()
            theirs = await service.history(Scope("default", "default", "theirs"))
            # Read, not taken over; on a cluster it stands in no partition of ours.
            assert [one.content for one in theirs.messages] == ["theirs"] * (servers == "redis_server")
            await service.erase(scopes[1], (await service.history(scopes[1])).messages[0].id)
        redis.delete_where(lambda key: "bert" in key and not key.endswith(":latest"))  # as where a session was evicted
        assert redis.names() > OTHERS.keys()
        done = await detach(url, there.url, settings)
        assert done.sessions == 2
        assert {key: redis.get(key) for key in redis.names()} == OTHERS


def test_what_an_earlier_version_queued_is_not_lost_by_a_detach(
    url: str, redis_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """It recorded no archive, neither there nor in the archive."""
    with memory(url, redis_server.url, worker=False) as service:
        service.append(ANNA, [UserMessage("one")])
    with client(redis_server.url) as redis, sqlite3.connect(url.removeprefix("sqlite:///")) as archive:
        redis.delete("threadkeep:journal:front")
        archive.execute("DELETE FROM tk_front")
    code, problem = _detached(capsys, "--url", url, "--redis", redis_server.url)
    assert (code, problem["code"]) == (1, "conflict")
    with memory(url, redis_server.url) as service:
        service.flushed()
    assert _detached(capsys, "--url", url, "--redis", redis_server.url)[0] == 0
    assert _told(url) == ["one"]


class RedisOfAnyKind:
    """The keys of a Redis or of a cluster, all nodes together."""

    def __init__(self, there: Server | RedisCluster) -> None:
        self._redis: Any = ClusterClient.from_url(there.url) if isinstance(there, RedisCluster) else client(there.url)
        self._nodes: Any = {"target_nodes": ClusterClient.PRIMARIES} if isinstance(there, RedisCluster) else {}

    def __enter__(self) -> RedisOfAnyKind:
        return self

    def __exit__(self, *_: object) -> None:
        self._redis.close()

    def names(self) -> set[str]:
        return {key.decode() for key in self._redis.keys(**self._nodes)}

    def get(self, key: str) -> str:
        kind = self._redis.type(key).decode()
        return self._redis.get(key).decode(errors="replace") if kind == "string" else kind

    def set(self, key: str, value: str) -> None:
        self._redis.set(key, value)

    def delete_where(self, doomed: Callable[[str], bool]) -> None:
        for key in filter(doomed, self.names()):
            self._redis.delete(key)
