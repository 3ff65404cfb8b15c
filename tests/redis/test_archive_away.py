"""A talk that begins while the archive is away: taken where nothing can have been lost, and refused where it can."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.redis.test_restarts import Flushing
from tests.servers.redis import RedisServer
from threadkeep.errors import Conflict, ScopeErased, StoreUnavailable
from threadkeep.journal.consumer import Consumer, ConsumerLimits
from threadkeep.journal.targets import archive_consumer
from threadkeep.ports.archive import Entry, Placed
from threadkeep.ports.journal import JournalEntry
from threadkeep.ports.sessions import Seed
from threadkeep.scope import Scope
from threadkeep.testing.drafts import admitted, draft, new_scope

AWAY = StoreUnavailable("the archive is away")


@pytest.fixture
async def flushing(new_redis: Callable[..., RedisServer]) -> AsyncIterator[Flushing]:
    flushing = Flushing(new_redis(appendonly=True, appendfsync="always"))
    yield flushing
    await flushing.client.close()


@pytest.fixture
async def watched(flushing: Flushing) -> Flushing:
    """The archive has answered once in this run of the server, and is away now."""
    await flushing.store.say(new_scope(), "the archive answers")
    await flushing.store.entries_of(new_scope())
    flushing.archive.failure = AWAY
    return flushing


async def test_a_new_talk_is_taken_under_numbers_that_no_archive_can_hold(watched: Flushing) -> None:
    scope = new_scope()
    first = await watched.store.say(scope, "one", "two")
    again = await watched.store.say(scope, "three")
    assert first.status == "queued"
    assert (first.seq > 1_000_000_000_000, again.seq) == (True, first.seq + 1)
    assert [text for _, text in await watched.store.everything(scope)] == ["one", "two", "three"]
    assert {entry.scope.generation for entry in await watched.store.entries_of(scope)} == {None}


async def test_a_talk_that_was_only_touched_is_new_too(watched: Flushing) -> None:
    scope = new_scope()
    await watched.store.hot.touch(scope)
    await watched.store.hot.set_language(scope, "vi")
    assert (await watched.store.say(scope, "one")).status == "queued"
    assert (await watched.store.now(scope)).language == "vi"


@pytest.mark.parametrize("lost", ["never watched", "wiped", "restarted", "may evict"])
async def test_where_something_can_have_been_lost_it_is_refused(flushing: Flushing, lost: str) -> None:
    known, new = new_scope(), new_scope()
    if lost != "never watched":
        await flushing.store.say(known, "one")
    if lost == "wiped":
        await flushing.client.command("FLUSHALL")
    elif lost == "restarted":
        await flushing.restart()
    elif lost == "may evict":
        await flushing.client.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    flushing.archive.failure = AWAY
    for scope in (new,) if lost == "may evict" else (known, new):
        with pytest.raises(StoreUnavailable, match="archive is away"):
            await flushing.store.say(scope, "two")
    assert await flushing.store.hot.read(new) is None


async def test_a_talk_of_an_older_run_is_refused_though_others_began_in_this_one(flushing: Flushing) -> None:
    known = new_scope()
    await flushing.store.say(known, "one")
    await flushing.restart()
    await flushing.store.say(new_scope(), "the archive answers in the new run")
    flushing.archive.failure = AWAY
    with pytest.raises(StoreUnavailable):
        await flushing.store.say(known, "two")


async def test_when_the_archive_is_back_the_talk_goes_on_where_it_is(watched: Flushing) -> None:
    scope = new_scope()
    first = await watched.store.say(scope, "one")
    watched.archive.failure = None
    watched.archive.knows(scope, 40, generation=3)  # an old talk that had ended here, of a user who was once erased
    second = await watched.store.say(scope, "two")
    assert second.seq == first.seq + 1
    watched.archive.failure = AWAY  # it is sure now, and asks no more
    assert (await watched.store.hot.append(scope.at(3), admitted("three"), "k")).seq == first.seq + 2
    assert [entry.scope.generation for entry in await watched.store.entries_of(scope)] == [None, 3, 3]
    assert [text for _, text in await watched.store.everything(scope)] == ["one", "two", "three"]


async def test_a_turn_that_is_under_way_when_the_archive_is_back_goes_on_too(watched: Flushing) -> None:
    scope = new_scope()
    first = await watched.store.say(scope, "one")
    begun = (await watched.store.now(scope)).scope
    watched.archive.failure = None
    watched.archive.knows(scope, 40, generation=3)
    assert (await watched.store.say(begun, "two")).seq == first.seq + 1
    assert [entry.scope.generation for entry in await watched.store.entries_of(scope)] == [None, 3]


async def test_a_retry_is_known_while_the_archive_is_away_and_afterwards(watched: Flushing) -> None:
    scope, turn = new_scope(), admitted(draft("one", "m1"))
    first = await watched.store.hot.append(scope, turn, "k")
    assert (await watched.store.hot.append(scope, turn, "k")).replayed
    with pytest.raises(Conflict):
        await watched.store.hot.append(scope, admitted(draft("other", "m2")), "k")
    watched.archive.failure = None
    watched.archive.knows(scope, 0, generation=2)
    await watched.store.say(scope, "two")
    again = await watched.store.hot.append(scope, turn, "k")
    assert (again, again.replayed) == (first, True)


async def test_an_erase_takes_it_all_and_the_key_is_not_used_again(watched: Flushing) -> None:
    scope, turn = new_scope(), admitted(draft("one", "m1"))
    await watched.store.hot.append(scope, turn, "k")
    erased = await watched.store.hot.erase(scope, generation=0)
    assert (erased["sessions"].removed, erased["journal"].removed) == (1, 1)
    assert await watched.store.entries_of(scope) == []
    watched.archive.failure = None
    watched.archive.knows(scope, 0, generation=1)
    await watched.store.hot.erase(scope, generation=1)
    with pytest.raises(ScopeErased):
        await watched.store.hot.append(scope, turn, "k")


class Archive:
    """Stands for one whose scope is erased in a moment that the test chooses."""

    def __init__(self) -> None:
        self.generation, self.placed = 4, list[Entry]()

    async def seed(self, scope: Scope) -> Seed:
        return Seed(generation=self.generation)

    async def place(self, entries: list[Entry]) -> list[Placed]:
        answers: list[Placed] = []
        for entry in entries:
            assert entry.scope.generation is not None
            stale = entry.scope.generation < self.generation
            answers.append(Placed("dropped" if stale else "stored"))
            self.placed += [] if stale else [entry]
        return answers


async def _claimed(watched: Flushing, scope: Scope) -> tuple[list[JournalEntry], Archive, Consumer[JournalEntry]]:
    await watched.store.say(scope, "one")
    archive = Archive()
    worker = archive_consumer(watched.store.journal, archive, "w", ConsumerLimits(retry_seconds=()))  # type: ignore[arg-type]
    return list(await watched.store.journal.claim("w", 10)), archive, worker


async def test_the_worker_places_it_in_the_generation_of_its_day(watched: Flushing) -> None:
    claimed, archive, worker = await _claimed(watched, new_scope())
    await worker._flush(claimed)
    assert [entry.scope.generation for entry in archive.placed] == [4]
    assert (await watched.store.journal.depth()).entries == 1  # of the talk that the fixture began


@pytest.mark.parametrize("moment", ["before it is known", "before it is looked for", "before it is placed"])
async def test_an_erase_wins_whenever_it_comes(watched: Flushing, moment: str) -> None:
    """As `WriteBehind` erases: from the journal, then in the archive, then once more from the journal."""
    scope = new_scope()
    claimed, archive, worker = await _claimed(watched, scope)
    steps = {
        "before it is known": (archive, "seed"),
        "before it is looked for": (watched.store.journal, "standing"),
        "before it is placed": (archive, "place"),
    }
    owner, name = steps[moment]
    first = getattr(owner, name)

    async def after_an_erase(*given: object) -> object:
        await watched.store.hot.erase(scope, generation=0)
        archive.generation += 1
        return await first(*given)

    setattr(owner, name, after_an_erase)
    await worker._flush(claimed)
    await watched.store.hot.erase(scope, generation=archive.generation)
    assert archive.placed == []
    assert await watched.store.hot.read(scope) is None


async def test_between_the_two_halves_of_an_erase_nothing_slips_through(watched: Flushing) -> None:
    """The archive has raised its generation and the journal was emptied before that: what was claimed is dropped."""
    scope = new_scope()
    claimed, archive, worker = await _claimed(watched, scope)
    await watched.store.hot.erase(scope, generation=0)
    archive.generation += 1
    await worker._flush(claimed)
    assert archive.placed == []
