"""The Redis of the harness, spoken to by its real client."""

import psutil
import pytest
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.servers.locate import REDIS, locate_in_wheel
from tests.servers.redis import RedisServer


async def test_redis_answers_a_real_query(redis_server):
    async with Redis.from_url(redis_server.url) as redis:
        await redis.set("greeting", "xin chào")
        assert await redis.get("greeting") == "xin chào".encode()


async def test_wipe_empties_redis(redis_server):
    async with Redis.from_url(redis_server.url) as redis:
        await redis.set("greeting", "hello")
        redis_server.wipe()
        assert await redis.dbsize() == 0


async def test_a_killed_redis_comes_back_with_its_data(new_redis):
    server = new_redis(appendonly=True, appendfsync="always")
    async with Redis.from_url(server.url) as redis:
        await redis.set("greeting", "hello")
        first_run = (await redis.info("server"))["run_id"]
    server.kill()
    server.restart()
    async with Redis.from_url(server.url) as redis:
        assert await redis.get("greeting") == b"hello"
        assert (await redis.info("server"))["run_id"] != first_run


async def test_a_killed_redis_without_its_append_only_file_comes_back_empty(new_redis):
    server = new_redis(appendonly=False)
    async with Redis.from_url(server.url) as redis:
        await redis.set("greeting", "hello")
    server.kill()
    server.restart()
    async with Redis.from_url(server.url) as redis:
        assert await redis.dbsize() == 0


async def test_a_killed_redis_refuses_connections(new_redis):
    server = new_redis()
    server.kill()
    async with Redis.from_url(server.url) as redis:
        with pytest.raises(RedisConnectionError):
            await redis.ping()


def test_a_stopped_redis_leaves_no_process_and_no_folder(new_redis):
    server = new_redis()
    pid, folder = server.pid, server.folder
    assert psutil.pid_exists(pid)
    assert folder.exists()
    server.stop()
    assert not psutil.pid_exists(pid)
    assert not folder.exists()


async def test_the_valkey_of_a_wheel_stands_in_for_redis():
    found = locate_in_wheel(REDIS)
    if found is None:
        pytest.skip("no wheel with Valkey for this platform")
    with RedisServer(found.place, appendonly=True, appendfsync="always") as server:
        async with Redis.from_url(server.url) as redis:
            await redis.set("greeting", "hello")
            assert (await redis.info("server"))["server_name"] == "valkey"
        server.kill()
        server.restart()
        async with Redis.from_url(server.url) as redis:
            assert await redis.get("greeting") == b"hello"


async def test_a_cluster_spreads_its_keys_over_three_nodes(redis_cluster):
    async with RedisCluster.from_url(redis_cluster.url) as cluster:
        for number in range(50):
            await cluster.set(f"spread:{number}", number)
        assert await cluster.get("spread:49") == b"49"
        used = [len(await cluster.keys("spread:*", target_nodes=node)) for node in cluster.get_primaries()]
    assert len(used) == 3
    assert all(used)
    assert sum(used) == 50
