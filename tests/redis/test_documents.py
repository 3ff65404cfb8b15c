"""What an operator sees with GET, and what becomes of documents that others left there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions, to_json
from threadkeep.sessions.redis.scripts import Keys
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.clock import START, FakeClock
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import ArchiveAsked

ISO = START.isoformat()
LIMITS = SessionLimits(max_messages=4, ttl_seconds=600)


def code_points(text: str) -> bytes:
    return to_json([ord(character) for character in text])


def kept(scope: Scope, text: str, language: str | None) -> str | None:
    """Stands for policy: it masks one word and leaves out another, by the talk's language."""
    return None if text == "TOO LARGE" else text.replace("Kowalski", f"[REDACTED {language} {scope.conversation}]")


@pytest.fixture
def archive() -> ArchiveAsked:
    return ArchiveAsked()


@pytest.fixture
async def client(redis_server: Any) -> AsyncIterator[RedisClient]:
    redis_server.wipe()
    client = RedisClient(redis_server.url, PATIENT)
    yield client
    await client.close()


@pytest.fixture
def hot(client: RedisClient, archive: ArchiveAsked) -> RedisHotStore:
    options = HotOptions(limits=LIMITS, latest_ttl_seconds=7_200, tokens=code_points, keep=kept)
    return RedisHotStore(client, archive, options, FakeClock())


def talk(id: str) -> Scope:
    return Scope(user="default", conversation=id)


async def document(client: RedisClient, key: str) -> Any:
    return json.loads(await client.command("GET", key))


async def test_touching_creates_the_document_at_once(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.touch(talk("s1"))
    assert await document(client, "sessions:s1") == {"createdAt": ISO, "messages": []}


async def test_the_document_has_its_three_fields_and_messages_theirs(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.append(talk("s1"), admitted(draft("Cześć"), draft("Dzień dobry", role="assistant")))
    await hot.set_language(talk("s1"), "pl-PL")
    assert await document(client, "sessions:s1") == {
        "createdAt": ISO,
        "messages": [
            {"role": "user", "content": "Cześć", "ts": ISO},
            {"role": "assistant", "content": "Dzień dobry", "ts": ISO},
        ],
        "language": "pl-PL",
    }


async def test_the_document_is_trimmed_with_the_window(hot: RedisHotStore, client: RedisClient) -> None:
    for number in range(9):
        await hot.append(talk("s1"), admitted(f"text {number}"))
        if number == 5:
            await hot.set_language(talk("s1"), "en")
    shown = await document(client, "sessions:s1")
    assert [message["content"] for message in shown["messages"]] == ["text 5", "text 6", "text 7", "text 8"]
    assert shown["language"] == "en"


async def test_a_document_that_was_edited_by_hand_is_written_anew(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.append(talk("s1"), admitted("one"))
    await client.command("SET", "sessions:s1", '{"oops')
    await hot.append(talk("s1"), admitted("two"))
    shown = await document(client, "sessions:s1")
    assert [message["content"] for message in shown["messages"]] == ["one", "two"]


async def test_the_latest_turn_has_the_shape_of_its_readers(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.append(talk("c1"), admitted(draft("hi"), draft("yo", role="assistant")))
    assert await document(client, "conv:c1:latest") == {
        "user_msg": "hi",
        "assistant_msg": "yo",
        "reflection": None,
        "token_data": {"user": [104, 105], "assistant": [121, 111], "reflection": []},
        "user_id": "default",
        "ts": int(START.timestamp()),
    }


async def test_an_answer_completes_the_turn_and_a_question_begins_one(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.append(talk("c1"), admitted(draft("question")))
    asked = await document(client, "conv:c1:latest")
    await hot.append(talk("c1"), admitted(draft("answer", role="assistant")))
    answered = await document(client, "conv:c1:latest")
    await hot.append(talk("c1"), admitted(draft("next")))
    following = await document(client, "conv:c1:latest")
    shown = [(turn["user_msg"], turn["assistant_msg"]) for turn in (asked, answered, following)]
    assert shown == [("question", None), ("question", "answer"), ("next", None)]
    assert following["token_data"]["assistant"] == []


async def test_an_erased_message_leaves_the_document_and_the_latest_turn(
    hot: RedisHotStore, client: RedisClient
) -> None:
    await hot.append(talk("c1"), admitted(draft("hi", "m1"), draft("yo", "m2", role="assistant")))
    await hot.erase(talk("c1"), "m1")
    assert [m["content"] for m in (await document(client, "sessions:c1"))["messages"]] == ["yo"]
    turn = await document(client, "conv:c1:latest")
    assert (turn["user_msg"], turn["assistant_msg"], turn["token_data"]["user"]) == (None, "yo", [])


async def test_every_time_slides_and_the_journal_never_expires(hot: RedisHotStore, client: RedisClient) -> None:
    scope = talk("s1")
    await hot.append(scope, admitted("one"), "k")
    for key in await client.command("KEYS", "*"):
        await client.command("PEXPIRE", key, 60_000)
    await client.command("PERSIST", "threadkeep:journal")
    await client.command("PERSIST", "threadkeep:pending:s1")
    await hot.append(scope, admitted("two"), "k2")
    left = {key: await client.command("PTTL", key) for key in await client.command("KEYS", "*")}
    assert 590_000 < left[b"sessions:s1"] <= 600_000
    assert 590_000 < left[b"threadkeep:window:s1"] <= 600_000
    assert 7_190_000 < left[b"conv:s1:latest"] <= 7_200_000
    assert 7_190_000 < left[b"threadkeep:meta:s1"] <= 7_200_000
    assert left[b"threadkeep:journal"] == left[b"threadkeep:pending:s1"] == -1


async def test_reading_slides_nothing(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.touch(talk("s1"))
    await client.command("PEXPIRE", "sessions:s1", 60_000)
    await hot.read(talk("s1"))
    assert await client.command("PTTL", "sessions:s1") <= 60_000


async def test_nothing_stays_of_a_talk_once_it_is_settled_and_expired(hot: RedisHotStore, client: RedisClient) -> None:
    await hot.touch(talk("s1"))
    assert [key for key in await client.command("KEYS", "*") if await client.command("PTTL", key) < 0] == []


async def test_an_erased_talk_leaves_only_digests(hot: RedisHotStore, client: RedisClient) -> None:
    scope = Scope("shop", "jan.kowalski", "booking-42")
    await hot.append(scope, admitted(draft("secret", "m-77")), "key-9")
    await hot.erase(scope)
    for key in await client.command("KEYS", "*"):
        dumped = key + (await client.command("DUMP", key))
        for trace in (b"secret", b"m-77", b"key-9", b"kowalski"):
            if key != b"threadkeep:journal":  # a stream keeps deleted bytes until its node is rewritten
                assert trace not in dumped.replace(b"threadkeep:receipts:@shop:jan.kowalski:booking-42", b"")
    assert await client.command("XLEN", "threadkeep:journal") == 0


@pytest.mark.parametrize(
    ("scope", "place"),
    [
        (Scope(user="default", conversation="a:b/c {x}"), "a:b/c {x}"),
        (Scope(user="u42", conversation="c1"), "@default:u42:c1"),
        (Scope("shop", "default", "c1"), "@shop:default:c1"),
        (Scope("a:b", "50%", "c:1"), "@a%3Ab:50%25:c:1"),
        (Scope(user="default", conversation="@x"), "@default:default:@x"),
        (Scope("sklep", "Łukasz", "対話"), "@sklep:Łukasz:対話"),
    ],
)
def test_keys_are_literal_for_the_default_user_and_named_for_others(scope: Scope, place: str) -> None:
    assert Keys().session(scope) == f"sessions:{place}"
    assert Keys().latest(scope) == f"conv:{place}:latest"


def test_on_a_cluster_the_tag_comes_first_and_spreads() -> None:
    keys = Keys(cluster=True)
    scopes = [Scope("t", "u", f"{{p01}}{number}") for number in range(500)]
    tags = {keys.session(scope).split("}", 1)[0] for scope in scopes}
    assert len(tags) > 50
    assert all(tag.startswith("sessions:{p") for tag in tags)
    for scope in scopes[:20]:
        assert len({key[key.index("{") : key.index("}")] for key in keys.for_conversation(scope)}) == 1


OLD_DOCUMENTS: dict[str, bytes] = {
    "the first version": b'{"created": true}',
    "no messages": b'{"createdAt": "2025-01-01T00:00:00+00:00"}',
    "messages of a wrong type": b'{"messages": "none", "language": 7}',
    "null": b"null",
    "a list": b"[1, 2]",
    "not JSON": b'{"messages": [',
    "not text": b"\xff\xfe\x00",
    "empty": b"",
    "odd entries": b'{"messages": [1, null, {"role": "tool", "content": "x"}, {"role": "user"}]}',
}


@pytest.mark.parametrize("old", OLD_DOCUMENTS.values(), ids=OLD_DOCUMENTS.keys())
@pytest.mark.parametrize("verb", ["read", "touch", "set_language", "append"])
async def test_an_old_document_is_never_an_error(
    hot: RedisHotStore, client: RedisClient, old: bytes, verb: str
) -> None:
    scope = talk("s1")
    await client.command("SET", "sessions:s1", old)
    if verb == "set_language":
        await hot.set_language(scope, "vi")
    elif verb == "append":
        assert (await hot.append(scope, admitted("hello"))).seq == 1
    elif verb == "touch":
        await hot.touch(scope)
    found = await hot.read(scope)
    assert found is not None
    assert [message.content for message in found.window] == (["hello"] if verb == "append" else [])
    if verb != "read":
        assert set(await document(client, "sessions:s1")) >= {"createdAt", "messages"}


@pytest.mark.parametrize("make", [("LPUSH", "x"), ("HSET", "a", "b"), ("SADD", "x")])
async def test_a_key_of_another_type_is_replaced(
    hot: RedisHotStore, client: RedisClient, make: tuple[str, ...]
) -> None:
    await client.command(make[0], "sessions:s1", *make[1:])
    assert await hot.read(talk("s1")) is None
    assert (await hot.append(talk("s1"), admitted("hello"))).seq == 1
    assert len((await document(client, "sessions:s1"))["messages"]) == 1


async def test_an_old_document_with_messages_goes_on(hot: RedisHotStore, client: RedisClient) -> None:
    scope = talk("s1")
    old = [{"role": "user", "content": "Czy jest basen?", "ts": ISO}, {"role": "assistant", "content": "Tak", "ts": 3}]
    started = "2025-05-05T10:00:00+00:00"
    await client.command("SET", "sessions:s1", json.dumps({"createdAt": started, "messages": old, "language": "pl"}))
    await hot.append(scope, admitted("Dzięki"))
    shown = await document(client, "sessions:s1")
    assert [m["content"] for m in shown["messages"]] == ["Czy jest basen?", "Tak", "Dzięki"]
    assert (shown["createdAt"], shown["language"]) == (started, "pl")
    found = await hot.read(scope)
    assert found is not None
    assert [message.seq for message in found.window] == [-1, 0, 1]
    assert await client.command("XLEN", "threadkeep:journal") == 1  # what another wrote is not ours to archive
    assert (await hot.append(scope, admitted("more", "and more"))).seq == 3
    assert len((await document(client, "sessions:s1"))["messages"]) == 4


@pytest.mark.parametrize("verb", ["read", "touch", "append"])
async def test_an_old_document_goes_on_as_policy_lets_it(hot: RedisHotStore, client: RedisClient, verb: str) -> None:
    said = ["never shown", "Kowalski", "TOO LARGE", "I am Kowalski", "…"]
    old = {"messages": [{"role": "user", "content": text} for text in said], "language": "jan@example.com"}
    await client.command("SET", "sessions:s1", json.dumps(old))
    if verb == "append":
        await hot.append(talk("s1"), admitted("hello"))
    elif verb == "touch":
        await hot.touch(talk("s1"))
    found = await hot.read(talk("s1"))
    assert found is not None
    assert found.language is None
    masked = [(-2, "[REDACTED None s1]"), (-1, "I am [REDACTED None s1]"), (0, "…")]
    assert [(one.seq, one.content) for one in found.window if one.seq < 1] == masked
    assert {one.ts for one in found.window} == {START}  # the document has no time of its own
    if verb != "read":
        stored = await client.command("GET", "sessions:s1")
        assert b"Kowalski" not in stored
        assert b"jan@" not in stored


async def test_a_message_without_a_time_has_that_of_its_document(hot: RedisHotStore, client: RedisClient) -> None:
    started = "2025-05-05T10:00:00+00:00"
    old = {"createdAt": started, "messages": [{"role": "user", "content": "hi"}]}
    await client.command("SET", "sessions:s1", json.dumps(old))
    await hot.touch(talk("s1"))
    assert (await document(client, "sessions:s1"))["messages"][0]["ts"] == started


async def test_without_a_policy_nothing_of_an_old_document_is_kept(client: RedisClient, archive: ArchiveAsked) -> None:
    store = RedisHotStore(client, archive, clock=FakeClock())
    await client.command("SET", "sessions:s1", json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    assert (await store.touch(talk("s1"))).window == ()


async def test_an_old_document_of_a_talk_the_archive_knows_adds_no_doubles(
    hot: RedisHotStore, client: RedisClient, archive: ArchiveAsked
) -> None:
    scope = talk("s1")
    await hot.append(scope, admitted("one", "two"))
    await client.command("DEL", "threadkeep:meta:s1", "threadkeep:window:s1", "threadkeep:pending:s1")
    archive.knows(scope, 2)
    await hot.touch(scope)
    await hot.append(scope, admitted("three"))
    found = await hot.read(scope)
    assert found is not None
    assert [message.content for message in found.window] == ["three"]


async def test_a_script_that_the_server_forgot_is_sent_again(hot: RedisHotStore, client: RedisClient) -> None:
    scope = new_scope()
    await hot.append(scope, admitted("one"))
    await client.command("SCRIPT", "FLUSH")
    assert (await hot.append(scope, admitted("two"))).seq == 2


async def test_an_append_is_one_round_trip(hot: RedisHotStore, client: RedisClient) -> None:
    scope = new_scope()
    await hot.append(scope, admitted("one"))
    await client.command("CONFIG", "RESETSTAT")
    await hot.append(scope, admitted("two"))
    stats = await client.command("INFO", "commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1
    assert "cmdstat_eval" not in stats


async def test_the_document_stays_within_twice_what_it_shows(hot: RedisHotStore, client: RedisClient) -> None:
    """The oldest messages are blanked out in place, and the blanks cleared away before they outweigh the rest."""
    for number in range(100):
        await hot.append(talk("s1"), admitted(draft(f"question {number}"), draft("answer", role="assistant")))
        raw = await client.command("GET", "sessions:s1")
        shown = json.loads(raw)
        assert len(raw) < 3 * len(json.dumps(shown))
        assert shown["messages"][-2]["content"] == f"question {number}"
        found = await hot.read(talk("s1"), pending=0)
        assert found is not None
        assert [(m.role, m.content) for m in found.window] == [(m["role"], m["content"]) for m in shown["messages"]]
        assert [m.seq for m in found.window][-1] == found.last_seq == 2 * number + 2


async def test_the_window_alone_is_that_of_all_that_is_hot(hot: RedisHotStore) -> None:
    scope = talk("s1")
    voice = draft("spoken", modality="voice", language="vi", meta={"mime": "audio/ogg", "durationMs": 3})
    for text in ("one", "\ud83d\ude00", "zażółć", voice, "a\0b", "five", "six"):
        await hot.append(scope, admitted(text))
        quick, whole = await hot.read(scope, pending=0), await hot.read(scope)
        assert quick is not None
        assert whole is not None
        assert (quick.window, quick.language, quick.last_seq, quick.whole, quick.created_at, quick.scope) == (
            *(whole.window, whole.language, whole.last_seq, whole.whole, whole.created_at),
            whole.scope,
        )
