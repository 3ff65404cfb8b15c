"""Entries that the archive cannot take, among good ones: parked with a reason, and replayed once that is mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.chaos.harness import Chaos, nothing_parked, sized
from tests.chaos.writing import USER, Work, appending, write
from tests.contract.sql_statements import execute
from tests.servers.redis import RedisServer, client
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage
from threadkeep.compose.worker import open_journal

PATIENT = sized(60, 300)


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(900)
async def test_poison_among_good_entries_is_parked_and_comes_back_when_it_can(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    """Half of it cannot be read; the other half is refused for as long as a rule of the database forbids it."""
    redis = new_redis()
    bad = [USER.with_conversation(f"bad{number}") for number in range(sized(10, 100))]
    work = Work(chaos.folder, "w", writers=8, turns=sized(50, 1_250))
    async with chaos.memory(redis.url, worker=False) as memory:
        await write(appending(memory), work)
        for number, place in enumerate(bad):
            await memory.append(place, [UserMessage(f"bad {number} 0"), ModelResponse(f"bad {number} 1")])
    _spoil(redis.url, bad[::2])
    await _refuse(chaos)
    async with chaos.memory(redis.url) as memory:
        await memory.flushed(timeout=PATIENT)
        assert await _dead(memory) == len(bad)
    stored = await chaos.stored()
    assert sum(len(messages) for talk, messages in stored.items() if not talk.startswith("bad")) == 2 * 8 * work.turns
    _mend(redis.url)
    await _take(chaos)
    await _replay_all(chaos, redis.url)
    stored = await chaos.stored()
    for number, place in enumerate(bad):
        assert [m.content for m in stored[place.conversation or ""]] == [f"bad {number} 0", f"bad {number} 1"]
    async with chaos.memory(redis.url) as memory:
        for place in bad:  # the oracle was not told of them
            assert (await memory.erase(place)).complete
    await chaos.assert_right("removed")  # which this test asked for


def _spoil(url: str, places: Sequence[Scope]) -> None:
    names = {f'"{place.conversation}"'.encode() for place in places}
    with client(url) as redis:
        for journal in list(redis.scan_iter("*journal*", _type="stream")):
            for sid, fields in redis.xrange(journal):
                if any(name in fields[b"scope"] for name in names):
                    redis.xdel(journal, sid)
                    redis.xadd(journal, fields | {b"messages": fields[b"messages"].replace(b"[", b"<", 1)})


def _mend(url: str) -> None:
    with client(url) as redis:
        for dead in list(redis.scan_iter("*dead*", _type="stream")):
            for sid, fields in redis.xrange(dead):
                redis.xdel(dead, sid)
                redis.xadd(dead, fields | {b"messages": fields[b"messages"].replace(b"<", b"[", 1)})


async def _refuse(chaos: Chaos) -> None:
    """A rule of the database, as an operator may have made one."""
    unchecked = " NOT VALID" if chaos.url.startswith("postgres") else ""
    rule = f"ALTER TABLE tk_messages ADD CONSTRAINT no_bad CHECK (content NOT LIKE 'bad %'){unchecked}"
    await execute(chaos.url, rule)


async def _take(chaos: Chaos) -> None:
    await execute(chaos.url, "ALTER TABLE tk_messages DROP CONSTRAINT no_bad")


async def _replay_all(chaos: Chaos, redis: str) -> None:
    async with open_journal(redis, settings=Settings()) as journal:
        letters = await journal.dead(limit=10_000)
        assert all(letter.reason for letter in letters)
        assert await journal.replay([letter.id for letter in letters]) == len(letters)
    async with chaos.memory(redis) as memory:
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)


async def _dead(memory: Memory) -> int:
    lag = (await memory.health()).lag
    assert lag is not None
    return lag.dead
