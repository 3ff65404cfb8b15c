"""An append leaves one state behind, whatever stood there before it and whichever process reads it."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from threadkeep.model import Admission, Draft, Message
from threadkeep.ports.sessions import Hot, SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions, to_json
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import ArchiveAsked


def fresh(*drafts: Draft | str) -> Admission:
    """With ids that were made for this append, as policy makes them where the caller gives none."""
    return replace(admitted(*drafts), new_ids=True)


@pytest.fixture
def hot(client: RedisClient) -> RedisHotStore:
    options = HotOptions(limits=SessionLimits(max_messages=5), tokens=lambda text: to_json([ord(one) for one in text]))
    return RedisHotStore(client, ArchiveAsked(), options)


@pytest.fixture(params=[None, 60], ids=["by count", "by characters"])
async def stores(server: Any, request: pytest.FixtureRequest) -> AsyncIterator[list[RedisHotStore]]:
    """As in two processes."""
    clients = [RedisClient(server.url, PATIENT) for _ in range(2)]
    options = HotOptions(limits=SessionLimits(max_messages=4, max_chars=request.param))
    yield [RedisHotStore(client, ArchiveAsked(), options) for client in clients]
    for client in clients:
        await client.close()


def contents(hot: Hot | None) -> list[str]:
    assert hot is not None
    return [message.content for message in hot.window]


async def test_a_message_of_another_process_is_seen(stores: list[RedisHotStore]) -> None:
    here, there = stores
    scope = new_scope()
    await here.append(scope, admitted("one"))
    await here.read(scope, pending=0)
    await there.append(scope, admitted("two"))
    assert contents(await here.read(scope, pending=0)) == ["one", "two"]


@pytest.mark.parametrize("what", ["message", "conversation", "user"])
async def test_what_another_process_erased_is_not_shown(stores: list[RedisHotStore], what: str) -> None:
    here, there = stores
    scope = new_scope()
    receipt = await here.append(scope, admitted("secret"))
    await here.read(scope, pending=0)
    if what == "message":
        await there.erase(scope, receipt.kept[0])
        assert contents(await here.read(scope, pending=0)) == []
    else:
        await there.erase(scope if what == "conversation" else scope.whole_user)
        assert await here.read(scope, pending=0) is None


async def test_a_session_that_ended_is_not_shown(hot: RedisHotStore, client: RedisClient) -> None:
    scope = new_scope()
    await hot.append(scope, admitted("one"))
    await client.command("DEL", (await client.link()).keys.session(scope))
    found = await hot.read(scope, pending=0)
    assert found is not None  # it is still on its way to the archive
    assert found.window == ()


@pytest.mark.parametrize("seed", range(6))
async def test_after_whatever_was_done_the_document_shows_the_window(
    stores: list[RedisHotStore], client: RedisClient, seed: int
) -> None:
    rng, scope = random.Random(seed), new_scope()
    session = (await client.link()).keys.session(scope)
    for number in range(60):
        await _something(rng, rng.choice(stores), scope, number)
        found = await rng.choice(stores).read(scope, pending=0)
        document = await client.command("GET", session)
        assert (found is None or found.created_at is None) == (document is None)
        if found is not None and document is not None:
            shown = json.loads(document)
            assert [message["content"] for message in shown["messages"]] == contents(found)
            assert shown.get("language") == found.language


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


async def test_a_call_repeated_after_its_answer_was_lost_is_stored_once(hot: RedisHotStore) -> None:
    scope = new_scope()
    await hot.append(scope, fresh("before"))
    said = fresh("one", draft("two", role="assistant"))
    assert [(await hot.append(scope, said)).seq for _ in range(2)] == [3, 3]
    found = await hot.read(scope)
    assert found is not None
    assert [message.content for message in found.window] == ["before", "one", "two"]


async def test_an_erased_message_is_not_kept_again(hot: RedisHotStore) -> None:
    scope, said = new_scope(), fresh("secret")
    await hot.append(scope, fresh("before"))
    await hot.append(scope, said)
    await hot.erase(scope, said.drafts[0].id)
    receipt = await hot.append(scope, said)
    assert (receipt.kept, receipt.refused) == ((), {"erased": 1})


async def test_a_turn_that_an_earlier_version_kept_is_completed(hot: RedisHotStore, client: RedisClient) -> None:
    scope = new_scope()
    await hot.append(scope, fresh("question"))
    keys = (await client.link()).keys.for_conversation(scope)
    await client.command("HDEL", keys[2], "turn")
    fields = ("owner", '"u"', "ts", "7", "user", '"question"', "user_tokens", "[1,2]", "user_id", '"m1"')
    await client.command("HSET", keys[6], *fields)
    await hot.append(scope, fresh(draft("answer", role="assistant")))
    latest = json.loads(await client.command("GET", keys[1]))
    assert (latest["user_msg"], latest["assistant_msg"], latest["token_data"]["user"]) == ("question", "answer", [1, 2])


async def test_an_erased_message_leaves_a_turn_that_an_earlier_version_kept(
    hot: RedisHotStore, client: RedisClient
) -> None:
    scope = new_scope()
    await hot.append(scope, admitted(draft("secret", "m1")))
    keys = (await client.link()).keys.for_conversation(scope)
    await client.command("HSET", keys[6], "owner", '"u"', "ts", "7", "user", '"secret"', "user_id", '"m1"')
    await hot.erase(scope, "m1")
    assert await client.command("EXISTS", keys[6]) == 0
    assert b"secret" not in await client.command("GET", keys[1])


async def test_a_latest_turn_that_somebody_wrote_over_goes_with_its_message(
    hot: RedisHotStore, client: RedisClient
) -> None:
    scope = new_scope()
    await hot.append(scope, admitted(draft("secret", "m1")))
    latest = (await client.link()).keys.latest(scope)
    await client.command("SET", latest, '{"user_msg":"the secret"}')
    await hot.erase(scope, "m1")
    assert await client.command("GET", latest) is None


async def test_a_window_that_was_evicted_by_itself_does_not_pass_for_all_there_is(
    hot: RedisHotStore, client: RedisClient
) -> None:
    scope = new_scope()
    await hot.append(scope, fresh("one"))
    keys = (await client.link()).keys.for_conversation(scope)
    await client.command("DEL", keys[3])
    found = await hot.read(scope)
    assert found is not None
    assert not found.whole
    await hot.append(scope, fresh("two"))
    document = json.loads(await client.command("GET", keys[0]))
    assert [message["content"] for message in document["messages"]] == ["two"]


async def test_an_index_that_an_earlier_version_kept_is_emptied(hot: RedisHotStore, client: RedisClient) -> None:
    """That version reads by it where it still runs: a stale one would give messages others' ids."""
    scope = new_scope()
    await hot.append(scope, fresh("one"))
    meta = (await client.link()).keys.for_conversation(scope)[2]
    await client.command("HSET", meta, "index", '{"seq":1,"id":"m1"}')
    await hot.append(scope, fresh("two"))
    assert await client.command("HGET", meta, "index") == b""
