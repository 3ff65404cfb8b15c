"""`threadkeep dlq`, on entries that no version of Threadkeep could read."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.redis import RedisServer
from tests.servers.redis import client as redis_client
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep import Scope, SyncMemory, UserMessage
from threadkeep.compose.worker import open_journal
from threadkeep.sessions.redis.scripts import Keys

__all__ = ["threadkeep"]


@pytest.fixture
def redis(new_redis: Callable[..., RedisServer]) -> str:
    """With three entries that were given up on."""
    url = new_redis().url
    with redis_client(url) as server:
        for number in range(3):
            server.xadd(Keys().journal(""), {"v": "1", "scope": f"a secret {number}"})

    async def park() -> None:
        async with open_journal(url) as journal:
            assert await journal.claim("a worker", 10) == []

    asyncio.run(park())
    return url


def ids(threadkeep: Command, redis: str) -> list[str]:
    return [letter["id"] for letter in threadkeep("dlq", "list", "--redis", redis, "--json").json["letters"]]


def test_the_list_says_why_and_when_but_never_what(threadkeep: Command, redis: str) -> None:
    listed = threadkeep("dlq", "list", "--redis", redis, "--limit", "2", "--json")

    assert listed.json["total"] == 3
    first, _second = listed.json["letters"]
    assert first.keys() == {"id", "parked_at", "tenant", "user", "conversation", "messages", "reason"}
    assert "cannot be read" in first["reason"]
    shown = threadkeep("dlq", "list", "--redis", redis)
    assert "Dead letters: 3" in shown.stdout
    assert first["id"] in shown.stdout
    assert "secret" not in listed.stdout + shown.stdout


def test_the_redis_url_of_the_environment_is_enough(
    threadkeep: Command, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis)
    assert threadkeep("dlq", "list", "--json").json["total"] == 3


def test_one_is_dropped_by_its_id_and_the_others_stay(threadkeep: Command, redis: str) -> None:
    first, *others = ids(threadkeep, redis)

    ended = threadkeep("dlq", "drop", first, "--redis", redis, "--yes")

    assert (ended.code, ended.stdout) == (0, "1 of 1 dropped.\n")
    assert ids(threadkeep, redis) == others


def test_what_is_not_there_is_counted_and_ends_with_one(threadkeep: Command, redis: str) -> None:
    ended = threadkeep("dlq", "replay", "1-1", *ids(threadkeep, redis)[:1], "--redis", redis, "--yes", "--json")

    assert (ended.code, ended.json) == (1, {"asked": 2, "moved": 1})


def test_all_are_put_back_and_waiting_again(threadkeep: Command, redis: str) -> None:
    assert threadkeep("dlq", "replay", "--all", "--redis", redis, "--yes", "--json").json == {"asked": 3, "moved": 3}

    assert ids(threadkeep, redis) == []
    assert threadkeep("dlq", "replay", "--all", "--redis", redis, "--json").json == {"asked": 0, "moved": 0}


def test_nothing_happens_unless_it_is_confirmed(
    threadkeep: Command, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    unasked = threadkeep("dlq", "drop", "--all", "--redis", redis, "--json")
    declined = threadkeep("dlq", "drop", "--all", "--redis", redis)

    assert (unasked.code, unasked.problem["field"]) == (1, "--yes")
    assert declined.code == 1
    assert len(ids(threadkeep, redis)) == 3


@pytest.mark.parametrize("arguments", [(), ("--all", "1-1"), ("nonsense",), ("1-1; FLUSHALL",)])
def test_ids_that_are_none_are_refused_before_anything_is_done(
    threadkeep: Command, redis: str, arguments: tuple[str, ...]
) -> None:
    ended = threadkeep("dlq", "drop", *arguments, "--redis", redis, "--yes", "--json")

    assert (ended.code, ended.problem["field"]) == (1, "ids")
    assert len(ids(threadkeep, redis)) == 3


def test_a_redis_that_does_not_answer_is_told_in_a_line(
    threadkeep: Command, new_redis: Callable[..., RedisServer]
) -> None:
    server = new_redis()
    server.kill()
    ended = threadkeep("dlq", "list", "--redis", server.url, "--json")

    assert (ended.code, ended.problem["code"]) == (1, "store_unavailable")


def test_an_export_says_that_something_is_not_in_it(threadkeep: Command, redis: str, tmp_path: Path) -> None:
    places = ("--url", f"sqlite:///{tmp_path}/archive.db", "--redis", redis)
    with SyncMemory(places[1], redis=redis) as memory:
        memory.append(Scope("shop", "u42", "c1"), [UserMessage("hello")])
        memory.flushed()
    exported = threadkeep("export", *places)
    assert (exported.code, len(exported.stdout.splitlines())) == (0, 1)
    assert "3 journal entries were given up on" in " ".join(exported.stderr.split())
    counted = threadkeep("export", *places, "--out", str(tmp_path / "all.ndjson"), "--json")
    assert counted.json["dead_letters"] == 3
