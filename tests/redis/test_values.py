"""Slots and scratch on Redis: sealed, bound to their owner, gone in time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from tests.redis.servers import AgeingClock, nodes_of
from tests.servers.redis import client as plain_client
from threadkeep.errors import InvalidInput, InvalidSetting, TooLarge
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.values import RedisScratch, RedisSlots, slot_key
from threadkeep.testing.drafts import new_scope

KEY = slot_key(base64.b64encode(bytes(range(32))).decode())
PHONE = "+48 600 700 800 żółw"


@pytest.fixture
def slots(client: RedisClient) -> RedisSlots:
    return RedisSlots(client, KEY)


@pytest.mark.parametrize("value", [PHONE, "", "a\0b", "\ud83d\ude00", "👩‍👩‍👧‍👦", "x" * 65_536])
async def test_a_slot_gives_back_what_was_put(slots: RedisSlots, value: str) -> None:
    scope = new_scope()
    await slots.put(scope, "phone", value, 60)
    assert await slots.get(scope, "phone") == value


async def test_a_slot_is_gone_after_its_time_and_after_delete(slots: RedisSlots, ageing_clock: AgeingClock) -> None:
    scope = new_scope()
    await slots.put(scope, "phone", PHONE, 60)
    await slots.put(scope, "mail", "an@example.com", 600)
    ageing_clock.advance(60)
    assert (await slots.get(scope, "phone"), await slots.get(scope, "mail")) == (None, "an@example.com")
    assert (await slots.delete(scope, "phone"), await slots.delete(scope, "mail")) == (False, True)
    assert await slots.get(scope, "mail") is None


async def test_erasing_reaches_every_slot_of_the_scope_and_no_other(slots: RedisSlots) -> None:
    scope, neighbour = new_scope(), new_scope()
    places = [scope, *(scope.with_conversation(f"c{number}") for number in range(2, 9)), scope.whole_user]
    for place in (*places, neighbour):
        await slots.put(place, "phone", PHONE, 60)
    assert await slots.erase(scope) == 1
    assert await slots.erase(scope.whole_user) == 8
    assert [await slots.get(place, "phone") for place in places] == [None] * 9
    assert await slots.get(neighbour, "phone") == PHONE


async def test_another_process_reads_it_with_the_key_and_not_without(slots: RedisSlots, client: RedisClient) -> None:
    scope = new_scope()
    await slots.put(scope, "phone", PHONE, 60)
    assert await RedisSlots(client, KEY).get(scope, "phone") == PHONE
    assert await RedisSlots(client, slot_key(None)).get(scope, "phone") is None


async def test_a_value_moved_to_another_owner_cannot_be_read(slots: RedisSlots, client: RedisClient) -> None:
    mine = new_scope()
    theirs = mine.with_conversation("c2")
    keys = (await client.link()).keys
    await slots.put(mine, "phone", PHONE, 60)
    stolen = await client.command("GET", keys.value("slot", mine, "phone"))
    for scope, name in ((theirs, "phone"), (mine, "mail"), (mine.whole_user, "phone")):
        await client.command("SET", keys.value("slot", scope, name), stolen, "PX", 60_000)
        assert await slots.get(scope, name) is None
    await client.command("SET", keys.value("slot", mine, "phone"), b"short", "PX", 60_000)
    assert await slots.get(mine, "phone") is None


async def test_no_value_crosses_the_wire_or_rests_in_plain_text(server: Any, client: RedisClient) -> None:
    scope, secrets = new_scope(), [PHONE, "kw1234secret", "https://private.example/token"]
    slots, scratch = RedisSlots(client, KEY), RedisScratch(client, KEY)
    await client.link()
    heard: list[str] = []
    for url in nodes_of(server):
        with plain_client(url) as redis, redis.monitor() as monitor:
            await slots.put(scope, "phone", secrets[0], 60)
            await scratch.put(scope, "tool.temp.kw1234secret", {"found": secrets[1:], "n": 1}, 60)
            redis.connection_pool.reset()
            with plain_client(url) as other:
                other.echo("the end")
            while "the end" not in (line := str(monitor.next_command()["command"])):
                heard.append(line)
            stored = b"".join(key + (redis.dump(key) or b"") for key in redis.scan_iter())
            assert not [secret for secret in secrets if secret.encode() in stored]
    assert heard
    assert not [line for line in heard for secret in secrets if secret in line or secret.encode().hex() in line]
    assert await scratch.get(scope, "tool.temp.kw1234secret") == {"found": secrets[1:], "n": 1}


BAD: list[tuple[Any, Any, Any]] = [
    ("", "v", 60),
    ("x" * 256, "v", 60),
    (None, "v", 60),
    ("n", None, 60),
    ("n", b"v", 60),
    ("n", "v", 0),
    ("n", "v", -1),
    ("n", "v", float("nan")),
    ("n", "v", 86_401),
    ("n", "v", True),
]


@pytest.mark.parametrize(("name", "value", "ttl"), BAD)
async def test_odd_input_is_refused(slots: RedisSlots, name: Any, value: Any, ttl: Any) -> None:
    with pytest.raises(InvalidInput):
        await slots.put(new_scope(), name, value, ttl)


async def test_a_value_too_large_is_refused(slots: RedisSlots) -> None:
    with pytest.raises(TooLarge):
        await slots.put(new_scope(), "n", "x" * 65_537, 60)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
async def test_scratch_refuses_what_json_cannot_carry(client: RedisClient, value: Any) -> None:
    with pytest.raises(InvalidInput):
        await RedisScratch(client, KEY).put(new_scope(), "tool.temp.x", value)


@pytest.mark.parametrize("setting", ["short", "!" * 44, base64.b64encode(b"x" * 31).decode(), "ż" * 44])
def test_a_key_that_is_none_is_named_and_not_repeated(setting: str) -> None:
    with pytest.raises(InvalidSetting, match="THREADKEEP_SLOT_KEY") as raised:
        slot_key(setting)
    assert setting not in str(raised.value)


@pytest.fixture
async def one_client(redis_server: Any) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_server.url, PATIENT)
    yield client
    await client.close()


async def test_many_puts_at_once_are_all_there(one_client: RedisClient) -> None:
    scope, slots = new_scope(), RedisSlots(one_client, KEY)
    await asyncio.gather(*(slots.put(scope, f"n{number}", str(number), 60) for number in range(100)))
    assert await asyncio.gather(*(slots.get(scope, f"n{number}") for number in range(100))) == [
        str(number) for number in range(100)
    ]
    assert await slots.erase(scope) == 100
