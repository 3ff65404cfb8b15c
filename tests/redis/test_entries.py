"""A journal entry on the wire, and what becomes of one that nobody can read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.journal import RedisJournal, UnreadableEntry, read_entry
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.stores import HotUnderTest, OpenHot

GOOD = {
    b"v": b"1",
    b"scope": b'["shop","u1","c1"]',
    b"generation": b"3",
    b"key": b"",
    b"payload": b"00ff",
    b"receipt": b'{"status":"queued","seq":7,"kept":["m1"],"refused":{},"stripped":{},"redacted":{}}',
    b"messages": b'[{"seq":7,"id":"m1","role":"user","content":"hi","ts":"2026-03-01T09:00:00+00:00"}]',
}


def test_a_good_entry_is_read() -> None:
    entry = read_entry("1700000000000-0", GOOD)
    assert (entry.scope.generation, entry.messages[0].seq, entry.key, entry.payload) == (3, 7, None, b"\x00\xff")


@pytest.mark.parametrize("field", GOOD.keys())
@pytest.mark.parametrize("value", [None, b"", b"2", b"null", b"[]", b"{", b"\xff", b'["","u","c"]', b"[1]", b"[[]]"])
def test_a_field_that_is_missing_or_odd_makes_the_entry_unreadable_at_worst(field: bytes, value: bytes | None) -> None:
    fields: dict[bytes, Any] = {**GOOD, field: value}
    if value is None:
        del fields[field]
    with suppress(UnreadableEntry):  # and nothing else
        read_entry("1-0", fields)


async def test_a_poison_entry_is_parked_and_the_rest_goes_through(
    redis_server: Any, client: RedisClient, open_hot: OpenHot
) -> None:
    async with open_hot() as store:
        scope = new_scope()
        keys = (await client.link()).keys
        stream = keys.journal(keys.tag(scope))
        before = len(await store.journal.dead(10_000))
        await store.say(scope, "one")
        await client.command("XADD", stream, "*", "v", "99", "messages", "?")
        await client.command("XADD", stream, "*", "rubbish", b"\xff\x00")
        await store.say(scope, "two")
        entries = await store.entries_of(scope)
        assert [entry.messages[0].content for entry in entries] == ["one", "two"]
        dead = await store.journal.dead(10_000)
        assert len(dead) == before + 2
        poison = [letter for letter in dead if letter.entry is None]
        assert all("entry" in letter.reason for letter in poison)
        assert await RedisJournal(client).drop([letter.id for letter in poison]) == len(poison)


async def test_entries_in_nobodys_hands_are_handed_out_again(
    server: Any, client: RedisClient, open_hot: OpenHot
) -> None:
    """An operator deleted the consumer, and with it what it held: `stale_seconds` is never reached for these."""
    server.wipe()
    async with open_hot() as store:
        scope = new_scope()
        keys = (await client.link()).keys
        stream = keys.journal(keys.tag(scope))
        await store.say(scope, "one")
        await store.say(scope, "two")
        held = await store.journal.claim("first", 1)
        await store.journal.claim("deleted", 100)
        await client.command("XGROUP", "DELCONSUMER", stream, "archive", "deleted")
        found = await store.journal.claim("second", 100)
        assert [entry.messages[0].content for entry in (*held, *found)] == ["one", "two"]
        assert await store.journal.claim("third", 100) == []
        await store.journal.settle([*held, *found])
        assert (await store.journal.depth()).entries == 0


async def given_up_on(store: HotUnderTest, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a dead letter as a worker of another version leaves it: unread, with all its words."""
    await store.say(scope, "words that a worker of another version could not read")
    with monkeypatch.context() as older:
        older.setattr("threadkeep.sessions.redis.journal.VERSION", b"0")
        assert await store.entries_of(scope) == []
    return (await store.journal.dead(10_000))[-1].id


async def test_an_erase_reaches_a_dead_letter_that_nobody_could_read(
    server: Any, open_hot: OpenHot, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.wipe()
    async with open_hot() as store:
        scope = new_scope()
        await given_up_on(store, scope, monkeypatch)
        assert (await store.hot.erase(scope.whole_user))["journal"].removed == 1
        assert await store.journal.dead(10_000) == []


@pytest.mark.parametrize("verb", ["replay", "drop"])
async def test_such_a_dead_letter_leaves_nothing_pending_once_it_is_settled(
    server: Any, client: RedisClient, open_hot: OpenHot, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    server.wipe()
    async with open_hot() as store:
        scope = new_scope()
        letter = await given_up_on(store, scope, monkeypatch)
        assert await getattr(store.journal, verb)([letter]) == 1
        await store.journal.settle(await store.entries_of(scope))
        pending = (await client.link()).keys.for_conversation(scope)[4]
        assert await client.command("EXISTS", pending) == 0
