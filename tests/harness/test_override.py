"""A server named by an environment variable is used as it is."""

import pytest
from redis.asyncio import Redis

from tests.servers.locate import REDIS, locate
from tests.servers.provide import given_or_own
from tests.servers.redis import wipe_database
from tests.servers.server import ServerIsNotOurs


def start_nothing(program):
    raise AssertionError(f"{program} must not be started: a variable names the server")


@pytest.fixture
def given_redis(new_redis):
    running = new_redis()
    return given_or_own(locate(REDIS, {"TEST_REDIS_URL": running.url}), start_nothing, wipe_database)


async def test_a_given_server_is_used_and_outlives_the_block(given_redis):
    with given_redis as server:
        assert not server.owned
    async with Redis.from_url(given_redis.url) as redis:
        assert await redis.ping()


async def test_wipe_empties_only_the_database_that_was_given(given_redis):
    async with Redis.from_url(given_redis.url) as ours, Redis.from_url(given_redis.url[:-1] + "1") as theirs:
        await ours.set("a", 1)
        await theirs.set("b", 2)
        given_redis.wipe()
        assert await ours.dbsize() == 0
        assert await theirs.dbsize() == 1


@pytest.mark.parametrize("action", ["kill", "restart"])
def test_a_given_server_cannot_be_killed_or_restarted(given_redis, action):
    with pytest.raises(ServerIsNotOurs, match=f"cannot {action} the server at TEST_REDIS_URL"):
        getattr(given_redis, action)()


@pytest.mark.server("redis")
def test_a_marked_test_runs_when_its_server_is_there():
    assert locate(REDIS)
