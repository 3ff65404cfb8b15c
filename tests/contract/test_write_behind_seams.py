"""Where archive and hot store meet: one history, one erasure, one order, whichever of them was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.contract.behind import Behind, archive_stores, behind
from tests.servers.server import Server
from threadkeep.archive.write_behind import GAP
from threadkeep.errors import OutcomeUnknown, ScopeErased, StoreUnavailable
from threadkeep.model import ConversationChange, HistoryRange
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say, texts

WINDOW = 3
LIMITS = SessionLimits(max_messages=WINDOW)
Open = Callable[..., Awaitable[Behind]]


@pytest.fixture(params=["sqlite", "postgres"])
async def opened(request: pytest.FixtureRequest, redis_server: Server) -> AsyncIterator[Open]:
    server: Any = None if request.param == "sqlite" else request.getfixturevalue("postgres_server")
    async with AsyncExitStack() as stack:

        async def open_(durability: Any = "fast") -> Behind:
            stores = await stack.enter_async_context(archive_stores(request.param, server and server.url)(LIMITS))
            return await stack.enter_async_context(behind(redis_server.url, stores, durability, LIMITS))

        yield open_


@pytest.fixture
async def fast(opened: Open) -> Behind:
    return await opened("fast")


async def _said(parts: Behind, scope: Scope, *numbers: int) -> None:
    for number in numbers:
        await say(parts.archive, scope, f"text {number}")


async def _shown(parts: Behind, scope: Scope, **wanted: Any) -> list[str]:
    return [message.content for message in (await parts.archive.messages(scope, HistoryRange(**wanted))).messages]


def _texts(*numbers: int) -> list[str]:
    return [f"text {number}" for number in numbers]


async def test_ones_own_words_are_read_while_no_worker_runs(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, *range(1, 9))
    assert await texts(fast.stored, scope) == []
    assert await texts(fast.archive, scope) == _texts(*range(1, 9))
    assert await _shown(fast, scope, limit=WINDOW) == _texts(6, 7, 8)


@pytest.mark.parametrize("flushed", range(0, 9, 2))
async def test_pages_cross_the_seam_without_a_gap_or_a_double(fast: Behind, flushed: int) -> None:
    scope = new_scope()
    await _said(fast, scope, *range(1, flushed + 1))
    await fast.flush()
    await _said(fast, scope, *range(flushed + 1, 9))
    pages: list[str] = []
    before = None
    for _ in range(10):
        page = await fast.archive.messages(scope, HistoryRange(limit=2, before=before))
        pages = [message.content for message in page.messages] + pages
        before = page.before
        if before is None:
            break
    assert pages == _texts(*range(1, 9))


async def test_what_was_said_while_redis_was_away_is_read_when_it_is_back(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1, 2)
    fast.line.reset()
    await _said(fast, scope, 3, 4)
    fast.line.restore()
    assert await _shown(fast, scope, limit=WINDOW) == _texts(2, 3, 4)
    session = await fast.sessions.read(scope)
    assert session is not None
    assert [message.content for message in session.messages] == _texts(2, 3, 4)
    await _said(fast, scope, 5)
    await fast.flush()
    stored = await kept(fast.stored, scope)
    assert [message.content for message in stored] == _texts(*range(1, 6))
    assert stored[2].seq > GAP
    assert await texts(fast.archive, scope) == _texts(*range(1, 6))


async def test_many_tasks_find_redis_back_and_none_takes_a_number_twice(fast: Behind) -> None:
    scopes = [new_scope() for _ in range(5)]
    for scope in scopes:
        await _said(fast, scope, 1)
    fast.line.reset()
    await asyncio.gather(*(_said(fast, scope, 2, 3) for scope in scopes))
    fast.line.restore()
    await asyncio.gather(*(say(fast.archive, scope, f"task {n}") for scope in scopes for n in range(10)))
    await fast.flush()
    for scope in scopes:
        said = [message.content for message in await kept(fast.stored, scope)]
        assert said[:3] == _texts(1, 2, 3)
        assert sorted(said[3:]) == [f"task {n}" for n in range(10)]
    assert (await fast.journal.depth()).dead == 0


async def test_an_append_without_an_answer_is_stored_once_though_both_stores_have_it(fast: Behind) -> None:
    scope, turn = new_scope(), admitted(draft("hello", "m1"))
    await _said(fast, scope, 1)
    await fast.hot.append(scope, turn, "k1")  # the answer to this one is lost
    fast.line.reset()
    receipt = await fast.archive.append(scope, turn, "k1")
    fast.line.restore()
    assert (receipt.status, receipt.seq) == ("stored", GAP + 1)
    assert await texts(fast.archive, scope) == ["text 1", "hello"]
    await fast.flush()
    assert [(m.seq, m.id) for m in await kept(fast.stored, scope)][1:] == [(GAP + 1, "m1")]
    assert await texts(fast.archive, scope) == ["text 1", "hello"]
    assert (await fast.journal.depth()).dead == 0


async def test_with_both_stores_away_the_outcome_is_said_to_be_unknown(opened: Open) -> None:
    parts = await opened()
    scope = new_scope()
    await _said(parts, scope, 1)
    parts.line.reset()

    async def gone(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    parts.archive._archive = type("Gone", (), {"leave_gap": gone, "append": gone})()  # type: ignore[assignment]
    try:
        with pytest.raises(OutcomeUnknown):
            await _said(parts, scope, 2)
    finally:
        parts.archive._archive = parts.stored
        parts.line.restore()


async def test_what_is_erased_does_not_come_back_with_the_worker(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1, 2)
    claimed = await fast.journal.claim("tested", 100)  # in a worker's hands already
    proof = await fast.archive.erase(scope)
    assert proof.complete
    assert proof.stores["journal"].removed == 2
    await fast.worker._flush(claimed)
    await fast.flush()
    assert await texts(fast.archive, scope) == []
    assert (await fast.archive.stats(scope)).messages == 0
    await _said(fast, scope, 3)
    await fast.flush()
    assert await texts(fast.stored, scope) == _texts(3)


@pytest.mark.parametrize("whole_user", [False, True])
async def test_an_erase_that_redis_did_not_hear_is_incomplete_and_completes_when_repeated(
    fast: Behind, whole_user: bool
) -> None:
    scope = new_scope()
    await _said(fast, scope, 1, 2)
    fast.line.reset()
    erased = scope.whole_user if whole_user else scope
    assert not (await fast.archive.erase(erased)).complete
    assert await texts(fast.archive, scope) == []
    fast.line.restore()
    assert await texts(fast.archive, scope) == []  # it was told before it was asked
    assert (await fast.archive.erase(erased)).complete
    await fast.flush()
    assert await texts(fast.archive, scope) == []


async def test_generations_of_the_two_stores_do_not_drift(fast: Behind) -> None:
    """Erased as a conversation and as a user, in turn, one of them unheard: what is said afterwards is kept."""
    scope = new_scope()
    for number, unheard in enumerate([False, True, False, True], 1):
        await _said(fast, scope, number)
        if unheard:
            fast.line.reset()
        await fast.archive.erase(scope if number % 2 else scope.whole_user)
        fast.line.restore()
        await _said(fast, scope, number + 10)
        await fast.flush()
        assert await texts(fast.stored, scope) == _texts(number + 10)
        assert await texts(fast.archive, scope) == _texts(number + 10)


async def test_work_begun_before_an_erase_is_refused(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1)
    stamped = (await fast.archive.messages(scope, HistoryRange())).scope
    await fast.archive.erase(scope)
    with pytest.raises(ScopeErased):
        await _said(fast, stamped, 2)
    assert await texts(fast.archive, scope) == []


async def test_one_queued_message_is_erased_and_the_rest_of_its_turn_arrives(fast: Behind) -> None:
    scope = new_scope()
    await fast.archive.append(scope, admitted(draft("keep", "m1"), draft("forget", "m2")))
    assert (await fast.archive.erase(scope, "m2")).complete
    assert await texts(fast.archive, scope) == ["keep"]
    await fast.flush()
    assert await texts(fast.stored, scope) == ["keep"]


async def test_conversations_and_counts_are_right_after_a_flush(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1, 2)
    await fast.flush()
    (one,) = await fast.archive.conversations(scope.whole_user, None, 10)
    assert (one.conversation, one.messages) == ("c1", 2)
    assert (await fast.archive.stats(scope)).messages == 2


async def test_a_conversation_that_is_only_queued_can_be_renamed(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1)
    await fast.archive.change(scope, ConversationChange(title="Nuts"))
    await fast.flush()
    (one,) = await fast.archive.conversations(scope.whole_user, None, 10)
    assert (one.title, one.messages) == ("Nuts", 1)


async def test_the_language_outlives_an_outage_and_changes_in_it(fast: Behind) -> None:
    scope = new_scope()
    await _said(fast, scope, 1)
    await fast.sessions.set_language(scope, "vi")
    fast.line.reset()
    assert (await fast.sessions.touch(scope)).language == "vi"
    await fast.sessions.set_language(scope, "pl")
    fast.line.restore()
    assert (await fast.sessions.touch(scope)).language == "pl"


async def test_durable_shows_in_the_window_what_a_killed_process_could_not(opened: Open) -> None:
    parts, scope = await opened("durable"), new_scope()
    await _said(parts, scope, 1)
    turn = admitted(draft("two", "m2"))
    await parts.stored.append(scope, turn, "k2")  # and then its process died
    assert (await parts.archive.append(scope, turn, "k2")).replayed
    assert await _shown(parts, scope, limit=WINDOW) == ["text 1", "two"]


async def test_durable_reads_its_own_words_after_redis_missed_them(opened: Open) -> None:
    parts, scope = await opened("durable"), new_scope()
    await _said(parts, scope, 1)
    parts.line.reset()
    await _said(parts, scope, 2, 3)
    parts.line.restore()
    assert await _shown(parts, scope, limit=WINDOW) == _texts(1, 2, 3)
    await _said(parts, scope, 4)
    assert [m.seq for m in await kept(parts.stored, scope)] == [1, 2, 3, 4]
    assert await _shown(parts, scope, limit=WINDOW) == _texts(2, 3, 4)


async def test_closing_while_redis_hangs_does_not_take_long(opened: Open) -> None:
    parts = await opened()
    await _said(parts, new_scope(), 1)
    parts.line.blackhole()
    async with asyncio.timeout(10):
        await parts.archive.close()
    parts.line.restore()


async def test_the_archive_leaves_a_new_gap_when_redis_was_back_in_between(fast: Behind) -> None:
    """Another process found Redis back, and part of what it queued has been flushed: those numbers are taken."""
    scope = new_scope()
    fast.line.reset()
    await _said(fast, scope, 1)
    fast.line.restore()
    for number in (2, 3):
        await fast.hot.append(scope, admitted(f"text {number}"))
        if number == 2:
            await fast.flush()
    fast.line.reset()
    await _said(fast, scope, 4)
    fast.line.restore()
    await fast.flush()
    assert await texts(fast.stored, scope) == _texts(1, 2, 3, 4)
    assert (await fast.journal.depth()).dead == 0
