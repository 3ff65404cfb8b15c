"""Most appends take a short way through the script; it must leave what the long way leaves."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from threadkeep.model import Admission, Draft
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import ArchiveAsked

LONG_WAY = scripts._script("append", before=scripts._SESSION)
OPTIONS = HotOptions(limits=SessionLimits(max_messages=5), tokenize=lambda text: [ord(one) for one in text])


def fresh(*drafts: Draft | str) -> Admission:
    """With ids that were made for this append, as policy makes them where the caller gives none."""
    return replace(admitted(*drafts), new_ids=True)


@pytest.fixture
def hot(client: RedisClient) -> RedisHotStore:
    return RedisHotStore(client, ArchiveAsked(), OPTIONS)


def some_talk(seed: int) -> list[tuple[str, Any]]:
    rng, steps = random.Random(seed), list[tuple[str, Any]]()
    for number in range(40):
        what = rng.choice(["say", "say", "say", "say", "say", "settle", "touch", "language"])
        roles = rng.choice([["user"], ["assistant"], ["user", "assistant"], ["user", "assistant", "user"]])
        language = "pl" if rng.random() < 0.1 else None
        said = [
            draft(f'{number} "ż", ts' + "x" * rng.randint(0, 40), role=role, language=language if not place else None)
            for place, role in enumerate(roles)
        ]
        steps.append((what, fresh(*said) if what == "say" else rng.choice(["en", "vi"])))
    return steps


async def play(hot: RedisHotStore, journal: RedisJournal, scope: Scope, steps: Sequence[tuple[str, Any]]) -> None:
    for what, value in steps:
        if what == "say":
            await hot.append(scope, value)
        elif what == "settle":
            await journal.settle(await journal.claim("worker", 2))
        elif what == "touch":
            await hot.touch(scope)
        else:
            await hot.set_language(scope, value)


async def left_behind(hot: RedisHotStore, client: RedisClient, scope: Scope) -> dict[str, Any]:
    keys = (await client.link()).keys.for_conversation(scope)
    document, latest, meta, window, pending, ids = keys[:6]
    found, quick = await hot.read(scope), await hot.read(scope, pending=0)
    assert found is not None
    assert quick is not None
    shown = (await client.command("HGET", meta, "shown")).split(b"\n")
    shown[2] = shown[7] = b""  # when it began; how long the document is, with its blanks
    flat: list[bytes] = await client.command("HGETALL", ids)
    known = flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
    text = json.loads(await client.command("GET", document))
    return {
        "hot": (found.window, found.pending, found.last_seq, found.language, found.whole),
        "quick": (quick.window, quick.last_seq, quick.language, quick.whole),
        "document": (text["messages"], text.get("language")),
        "latest": json.loads(await client.command("GET", latest)) | {"user_id": ""},
        "shown": shown,
        "turn": await client.command("HGET", meta, "turn"),
        "ids": known,
        "counts": [await client.command("ZCARD", key) for key in (window, pending)],
        "mortal": [await client.command("PTTL", key) > 0 for key in (document, latest, meta, window, ids)],
    }


@pytest.mark.parametrize("seed", range(4))
async def test_the_short_way_leaves_what_the_long_way_leaves(
    hot: RedisHotStore, client: RedisClient, server: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    steps, scope, found = some_talk(seed), new_scope(), list[dict[str, Any]]()
    for script in (scripts.APPEND, LONG_WAY):
        server.wipe()
        monkeypatch.setattr(scripts, "APPEND", script)
        await play(hot, RedisJournal(client, OPTIONS), scope, steps)
        found.append(await left_behind(hot, client, scope))
    assert found[0] == found[1]


async def test_an_append_of_a_running_talk_takes_the_short_way(redis_server: Any) -> None:
    client = RedisClient(redis_server.url, PATIENT)
    hot, scope = RedisHotStore(client, ArchiveAsked(), OPTIONS), new_scope()
    for number in range(5):
        await hot.append(scope, fresh(f"text {number}"))
    await client.command("CONFIG", "RESETSTAT")
    await hot.append(scope, fresh("question", draft("answer", role="assistant")))
    stats = await client.command("INFO", "commandstats")
    await client.close()
    assert "cmdstat_zpopmin" in stats  # only the short way uses it
    calls = {name: value["calls"] for name, value in stats.items()}
    assert sum(calls.values()) - calls["cmdstat_evalsha"] - calls.get("cmdstat_config|resetstat", 0) <= 26


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


@pytest.mark.parametrize("script", [scripts.APPEND, LONG_WAY], ids=["short", "long"])
async def test_a_window_that_was_evicted_by_itself_does_not_pass_for_all_there_is(
    hot: RedisHotStore, client: RedisClient, monkeypatch: pytest.MonkeyPatch, script: scripts.Script
) -> None:
    monkeypatch.setattr(scripts, "APPEND", script)
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
