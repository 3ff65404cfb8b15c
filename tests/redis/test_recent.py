"""A window shown from memory is the one the server has, whoever wrote to it last."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from threadkeep.model import Admission, Message
from threadkeep.ports.sessions import Hot, SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, new_scope
from threadkeep.testing.stores import ArchiveAsked


@pytest.fixture(params=[None, 60], ids=["by count", "by characters"])
async def stores(redis_server: Any, request: pytest.FixtureRequest) -> AsyncIterator[list[RedisHotStore]]:
    """As in two processes, and a third that has seen nothing yet."""
    clients = [RedisClient(redis_server.url, PATIENT) for _ in range(3)]
    options = HotOptions(limits=SessionLimits(max_messages=4, max_chars=request.param))
    yield [RedisHotStore(client, ArchiveAsked(), options) for client in clients]
    for client in clients:
        await client.close()


async def window(store: RedisHotStore, scope: Scope) -> Hot | None:
    return await store.read(scope, pending=0)


def contents(hot: Hot | None) -> list[str]:
    assert hot is not None
    return [message.content for message in hot.window]


async def test_what_was_read_is_shown_again_without_being_carried(stores: list[RedisHotStore]) -> None:
    store, scope = stores[0], new_scope()
    await store.append(scope, admitted("one"))
    first = await window(store, scope)
    assert await window(store, scope) is first
    await store.append(scope, admitted("two", "three"))
    assert await window(store, scope) is await window(store, scope)
    assert contents(await window(store, scope)) == ["one", "two", "three"]


async def test_a_message_of_another_process_is_seen(stores: list[RedisHotStore]) -> None:
    here, there, _ = stores
    scope = new_scope()
    await here.append(scope, admitted("one"))
    await window(here, scope)
    await there.append(scope, admitted("two"))
    assert contents(await window(here, scope)) == ["one", "two"]


@pytest.mark.parametrize("what", ["message", "conversation", "user"])
async def test_what_another_process_erased_is_not_shown(stores: list[RedisHotStore], what: str) -> None:
    here, there, _ = stores
    scope = new_scope()
    receipt = await here.append(scope, admitted("secret"))
    await window(here, scope)
    if what == "message":
        await there.erase(scope, receipt.kept[0])
        assert contents(await window(here, scope)) == []
    else:
        await there.erase(scope if what == "conversation" else scope.whole_user)
        assert await window(here, scope) is None


async def test_a_session_that_ended_is_not_shown(stores: list[RedisHotStore], redis_server: Any) -> None:
    store, scope = stores[0], new_scope()
    await store.append(scope, admitted("one"))
    await window(store, scope)
    client = RedisClient(redis_server.url, PATIENT)
    await client.command("DEL", (await client.link()).keys.session(scope))
    await client.close()
    found = await window(store, scope)
    assert found is not None  # it is still on its way to the archive
    assert found.window == ()


@pytest.mark.parametrize("seed", range(6))
async def test_after_whatever_was_done_everyone_shows_the_same(stores: list[RedisHotStore], seed: int) -> None:
    rng, scope = random.Random(seed), new_scope()
    *writers, stranger = stores
    for number in range(60):
        await _something(rng, rng.choice(writers), scope, number)
        reader = rng.choice(writers)
        found = await window(reader, scope)
        stranger._recent.forget(scope)
        assert found == await window(stranger, scope)


async def _something(rng: random.Random, store: RedisHotStore, scope: Scope, number: int) -> None:
    match rng.choice(["say", "say", "say", "say", "say again", "touch", "language", "erase one", "erase", "place"]):
        case "say":
            await store.append(scope, _said(rng, number))
        case "say again":
            said = _said(rng, number)
            await store.append(scope, said)
            await store.append(scope, said)
        case "touch":
            await store.touch(scope)
        case "language":
            await store.set_language(scope, rng.choice(["en", "pl"]))
        case "erase one":
            hot = await store.read(scope)
            if hot is not None and hot.window:
                await store.erase(scope, rng.choice(hot.window).id)
        case "erase" if rng.random() < 0.3:
            await store.erase(scope)
        case "place":
            hot = await store.read(scope)
            (draft,) = admitted(f"placed {number}").drafts
            seq = (hot.last_seq if hot else 0) + rng.randint(1, 3)
            await store.refresh(scope, [Message(seq, draft.id, draft.role, draft.content, draft.ts)])


def _said(rng: random.Random, number: int) -> Admission:
    said = admitted(*(f"{number} " + "x" * rng.randint(0, 30) for _ in range(rng.randint(1, 3))))
    return replace(said, new_ids=rng.random() < 0.7)


async def test_a_talk_that_is_only_written_to_is_remembered_no_longer_than_a_few_appends(
    stores: list[RedisHotStore],
) -> None:
    store, scope = stores[0], new_scope()
    await store.append(scope, admitted("one"))
    await window(store, scope)
    for number in range(8):
        await store.append(scope, admitted(f"text {number}"))
    assert contents(await window(store, scope))[-1] == "text 7"
    for number in range(9):
        await store.append(scope, admitted(f"later {number}"))
    assert store._recent.of(scope) is None
    assert contents(await window(store, scope))[-1] == "later 8"


async def test_the_size_of_what_is_remembered_is_kept_while_it_grows_and_goes(stores: list[RedisHotStore]) -> None:
    store, scope, other = stores[0], new_scope(), new_scope()
    for place in (scope, other):
        await store.append(place, admitted("one"))
        await window(store, place)
    for number in range(5):
        await store.append(scope, admitted(f"text {number}"))
    await window(store, scope)
    await store.append(scope, admitted("last"))
    for place in (scope, other):
        store._recent.forget(place)
    assert store._recent._size == 0
