"""Whatever a server forgets, no number is given twice: restart, roll-back, wipe, expiry, eviction by hand."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.redis.conftest import PATIENT
from tests.servers.process import give_to_account
from tests.servers.redis import RedisServer
from threadkeep.errors import StoreUnavailable
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import ArchiveAsked, HotUnderTest

NewRedis = Callable[..., RedisServer]
JUMP = HotOptions().jump
MARK = "threadkeep:journal:run"


class Flushing:
    """A store whose journal a test drains into a list that stands for the archive."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.client = RedisClient(server.url, PATIENT)
        self.archive = ArchiveAsked()
        options = HotOptions(limits=SessionLimits(max_messages=3))
        self.store = HotUnderTest(
            RedisHotStore(self.client, self.archive, options), RedisJournal(self.client, options, 60), self.archive
        )
        self.rows: dict[tuple[Scope, int], str] = {}

    async def flush(self, scope: Scope) -> None:
        entries = await self.store.entries_of(scope)
        for entry in entries:
            for message in entry.messages:
                place = (scope, message.seq)
                assert self.rows.setdefault(place, message.id) == message.id, "a number was given twice"
        await self.store.journal.settle(entries)
        self.archive.knows(scope, max((seq for place, seq in self.rows if place == scope), default=0))

    def seqs(self, scope: Scope) -> list[int]:
        return sorted(seq for place, seq in self.rows if place == scope)

    async def restart(self) -> None:
        await asyncio.to_thread(self.server.kill)
        await asyncio.to_thread(self.server.restart)


@pytest.fixture(params=["kept", "lost"])
async def flushing(request: pytest.FixtureRequest, new_redis: NewRedis) -> AsyncIterator[Flushing]:
    kept = request.param == "kept"
    flushing = Flushing(new_redis(appendonly=kept, appendfsync="always"))
    yield flushing
    await flushing.client.close()


@pytest.fixture
async def durable(new_redis: NewRedis) -> AsyncIterator[Flushing]:
    flushing = Flushing(new_redis(appendonly=True, appendfsync="always"))
    yield flushing
    await flushing.client.close()


async def test_after_a_restart_the_numbers_go_on_past_the_archive(flushing: Flushing) -> None:
    scope = new_scope()
    await flushing.store.say(scope, "one", "two")
    await flushing.flush(scope)
    await flushing.restart()
    receipt = await flushing.store.say(scope, "three")
    assert receipt.seq == 2 + JUMP + 1
    await flushing.flush(scope)
    assert flushing.seqs(scope) == [1, 2, 3 + JUMP]


async def test_what_the_log_kept_is_pending_after_a_restart(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, *(f"text {number}" for number in range(5)))
    await durable.restart()
    found = await durable.store.now(scope)
    assert (len(found.pending), len(found.window), found.whole) == (2, 3, False)
    assert (await durable.store.say(scope, "more")).seq == 5 + JUMP + 1
    await durable.flush(scope)
    assert durable.seqs(scope) == [1, 2, 3, 4, 5, 6 + JUMP]


async def test_after_a_roll_back_no_number_is_given_twice(durable: Flushing, tmp_path: Path) -> None:
    scope, folder = new_scope(), durable.server.folder / "appendonlydir"
    await durable.store.say(scope, "one", "two")
    await asyncio.to_thread(durable.server.kill)
    shutil.copytree(folder, tmp_path / "before")
    await asyncio.to_thread(durable.server.restart)
    await durable.store.say(scope, "three", "four")
    await durable.flush(scope)  # the archive now holds more than the log that we put back
    await asyncio.to_thread(durable.server.kill)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "before", folder)
    for path in (folder, *folder.iterdir()):
        give_to_account(path)
    await asyncio.to_thread(durable.server.restart)
    assert (await durable.client.command("HGET", f"threadkeep:meta:@shop:{scope.user}:c1", "seq")) == b"2"
    receipt = await durable.store.say(scope, "five")
    assert receipt.seq > max(durable.seqs(scope))
    await durable.flush(scope)


async def test_after_a_wipe_every_old_talk_goes_on_past_the_archive(durable: Flushing) -> None:
    scopes = [new_scope() for _ in range(20)]
    for scope in scopes:
        await durable.store.say(scope, "one")
    for scope in scopes:
        entries = [entry for entry in await durable.store.journal.claim("w", 1_000) if entry.scope.user == scope.user]
        durable.rows |= {(scope, 1): entries[0].messages[0].id} if entries else {}
        durable.archive.knows(scope, 1)
    await durable.client.command("FLUSHALL")
    seqs = await asyncio.gather(*(durable.store.say(scope, "two") for scope in scopes))
    assert [receipt.seq for receipt in seqs] == [2 + JUMP] * 20
    assert not (await durable.store.now(scopes[0])).whole


async def test_after_a_wipe_the_archive_is_asked_about_every_key_for_a_while(durable: Flushing) -> None:
    """The receipts went with the rest; who retries may come after another has begun the talk anew."""
    scope, turn = new_scope(), admitted(draft("one", "m1"))
    first = await durable.store.hot.append(scope, turn, "k1")
    await durable.flush(scope)
    await durable.client.command("FLUSHALL")
    await durable.store.say(scope, "another begins")
    durable.archive.knows(scope, 1, payload=turn.digest, receipt=first)
    again = await durable.store.hot.append(scope, turn, "k1")
    assert (again, again.replayed) == (first, True)
    assert await durable.store.window(scope) == ["another begins"]


async def test_a_wipe_is_no_end_by_ttl(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, "one")
    await durable.client.command("SET", MARK, (await durable.client.command("GET", MARK)).split(b"\n")[0] + b"\n0")
    recently = datetime.now(UTC) - timedelta(minutes=5)
    durable.archive.knows(scope, 1, active_at=recently)
    await durable.client.command("DEL", f"threadkeep:meta:@shop:{scope.user}:c1")
    assert (await durable.store.say(scope, "two")).seq == 2  # for two days nobody spoke
    await durable.client.command("FLUSHALL")
    durable.archive.knows(scope, 2, active_at=recently)
    assert (await durable.store.say(scope, "three")).seq == 2 + JUMP + 1


async def test_a_server_that_may_evict_what_waits_is_not_trusted(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(new_scope(), "the store watches from here")
    await durable.client.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    durable.archive.knows(scope, 40, active_at=datetime.now(UTC) + timedelta(minutes=5))
    assert (await durable.store.say(scope, "hello")).seq == 40 + JUMP + 1


async def test_a_wiped_store_without_an_archive_refuses(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, "one")
    await durable.client.command("FLUSHALL")
    durable.archive.failure = StoreUnavailable("the archive is away")
    with pytest.raises(StoreUnavailable, match="archive"):
        await durable.store.say(scope, "two")
    assert await durable.store.hot.read(scope) is None


async def test_a_group_that_went_with_a_wipe_is_made_again_and_passes_nothing_over(durable: Flushing) -> None:
    scope = new_scope()
    assert await durable.store.entries_of(scope) == []
    await durable.client.command("FLUSHALL")
    await durable.store.say(scope, "one")
    assert len(await durable.store.entries_of(scope)) == 1


async def test_a_counter_that_expired_is_seeded_past_what_is_pending(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, "one", "two")
    await durable.client.command("DEL", f"threadkeep:meta:@shop:{scope.user}:c1")
    assert (await durable.store.say(scope, "three")).seq == 2 + JUMP + 1


async def test_what_is_flushed_while_the_archive_answers_keeps_its_numbers(durable: Flushing) -> None:
    """All but what waits has ended by its TTL during an outage; then a worker catches up while somebody goes on."""
    scope = new_scope()
    await durable.store.say(scope, "one")
    await durable.flush(scope)
    await durable.client.command("SET", MARK, (await durable.client.command("GET", MARK)).split(b"\n")[0] + b"\n0")
    await durable.store.say(scope, "two", "three")
    durable.archive.knows(scope, 1, active_at=datetime.now(UTC))
    ended = (f"{kind}:@shop:{scope.user}:c1" for kind in ("sessions", "threadkeep:meta", "threadkeep:window"))
    assert await durable.client.command("DEL", *ended) == 3
    (going_on,) = await durable.archive.shut_until_asked(1, durable.store.say(scope, "four"))
    await durable.flush(scope)
    durable.archive.answer()
    assert (await going_on).seq > 3
    await durable.flush(scope)


async def test_a_session_ended_by_hand_begins_anew_with_its_numbers(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, "one", "two")
    await durable.client.command("DEL", f"sessions:@shop:{scope.user}:c1")
    gone = await durable.store.now(scope)
    assert (gone.created_at, gone.window, [message.seq for message in gone.pending]) == (None, (), [1, 2])
    assert (await durable.store.say(scope, "three")).seq == 3
    assert await durable.store.everything(scope) == [(1, "one"), (2, "two"), (3, "three")]
    assert not (await durable.store.now(scope)).whole


async def test_while_the_server_is_away_calls_fail_in_time_and_afterwards_they_work(durable: Flushing) -> None:
    scope = new_scope()
    await durable.store.say(scope, "one")
    await asyncio.to_thread(durable.server.kill)
    with pytest.raises(StoreUnavailable):
        await durable.store.say(scope, "two")
    await asyncio.to_thread(durable.server.restart)
    assert (await durable.store.say(scope, "two")).seq > 1
