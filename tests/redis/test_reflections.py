"""A reflection that comes after its turn: into the latest turn, while that is the one it is about."""

from __future__ import annotations

import json

import pytest

from tests.redis.test_documents import archive, client, document, hot
from threadkeep.errors import ScopeErased
from threadkeep.model import Reflection
from threadkeep.ports.journal import TurnRecord, TurnReflection, TurnTokens
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.turns import RedisTurns
from threadkeep.testing.drafts import admitted, draft

__all__ = ["archive", "client", "hot"]


async def test_a_late_reflection_enters_the_turn_it_is_about_and_no_other(
    hot: RedisHotStore, client: RedisClient
) -> None:
    scope = Scope(user="default", conversation="late")
    about = Reflection("Booking failed", ("no room", "no deposit"))
    shown = {"summary": "Booking failed", "causes": ["no room", "no deposit"]}
    assert not await hot.set_latest_reflection(scope, "q1", about)  # nothing was said yet
    await hot.append(scope, admitted(draft("a room?", "q1"), draft("none left", "a1", role="assistant")))
    await client.command("PEXPIRE", "conv:late:latest", 60_000)
    assert not await hot.set_latest_reflection(scope, "q0", about)
    for id_ in ("a1", "q1"):  # told twice, it is told once
        assert await hot.set_latest_reflection(scope, id_, about)
    found = await document(client, "conv:late:latest")
    assert (found["user_msg"], found["assistant_msg"], found["reflection"]) == ("a room?", "none left", shown)
    tokens = "".join(map(chr, found["token_data"]["reflection"]))
    assert tokens == json.dumps(shown, sort_keys=True, separators=(",", ":"))
    assert 0 < await client.command("PTTL", "conv:late:latest") <= 60_000
    await hot.append(scope, admitted(draft("tomorrow?", "q2")))
    assert not await hot.set_latest_reflection(scope, "a1", about)
    assert (await document(client, "conv:late:latest"))["reflection"] is None


async def test_a_late_reflection_does_not_bring_an_erased_turn_back(hot: RedisHotStore, client: RedisClient) -> None:
    scope, about = Scope(user="default", conversation="gone"), Reflection("She is ill")
    await hot.append(scope, admitted(draft("I am ill", "q1"), draft("Get well", "a1", role="assistant")))
    stamped = (await hot.touch(scope)).scope
    await hot.erase(scope)
    assert not await hot.set_latest_reflection(scope, "a1", about)
    with pytest.raises(ScopeErased):
        await hot.set_latest_reflection(stamped, "a1", about)
    assert await client.command("EXISTS", "conv:gone:latest") == 0


async def test_a_late_reflection_enters_a_mapped_turn_of_its_own_user(client: RedisClient) -> None:
    turns, reflection = RedisTurns(client, ttl_seconds=60), TurnReflection(summary="Booking failed", causes=[])
    turn = TurnRecord(
        conversation_id="m1",
        user_id="u1",
        user_message="hi",
        assistant_message=None,
        reflection=reflection,
        token_data=TurnTokens(user=[7], assistant=[], reflection=[1, 2], encoding="utf8-bytes"),
        cid=None,
        created_at="2026-01-31T12:00:00+00:00",
    )
    assert not await turns.set_latest_reflection(turn)
    latest = {"user_msg": "hi", "reflection": None, "token_data": {"user": [7], "reflection": []}, "user_id": "u1"}
    await client.command("SET", "conv:m1:latest", json.dumps(latest), "EX", 30)
    assert not await turns.set_latest_reflection(turn | {"user_id": "u2"})
    assert not await turns.set_latest_reflection(turn | {"user_message": "an earlier one"})
    assert await turns.latest("m1") == latest
    assert await turns.set_latest_reflection(turn)
    tokens = {"user": [7], "reflection": [1, 2]}
    assert await turns.latest("m1") == latest | {"reflection": reflection, "token_data": tokens}
    assert 0 < await client.command("TTL", "conv:m1:latest") <= 30
