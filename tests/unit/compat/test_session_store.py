"""Session documents by id, read and written the way a chat service's router does it."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.compat import SessionStore, detect_language_bcp47
from threadkeep.sessions.document import read_document
from threadkeep.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def memory(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Memory]:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", clock=clock, settings=Settings()) as opened:
        yield opened


async def one_turn(store: SessionStore, session_id: str, question: str, answer: str) -> None:
    """The router of the concierge service: load, answer, trim to 20, set the language, save."""
    session = await store.get(session_id) or {}
    messages = session.get("messages", [])
    messages = [
        *messages,
        {"role": "user", "content": question, "ts": "2026-01-01T10:00:00+00:00"},
        {"role": "assistant", "content": answer, "ts": "2026-01-01T10:00:01+00:00"},
    ]
    await store.set(session_id, {**session, "messages": messages[-20:], "language": "pl-PL"})


async def test_touch_creates_the_document_at_once_without_a_language(memory: Memory) -> None:
    store = SessionStore(memory)
    assert await store.get("s1") is None
    await store.touch("s1")
    document = await store.get("s1")
    assert document is not None
    assert set(document) == {"createdAt", "messages"}
    assert document["messages"] == []
    assert datetime.fromisoformat(document["createdAt"]).tzinfo is not None


async def test_after_a_turn_the_document_holds_both_messages_and_the_language(memory: Memory) -> None:
    store = SessionStore(memory)
    await one_turn(store, "s1", "Macie wolne pokoje?", "Tak, dwa.")
    assert await store.get("s1") == {
        "createdAt": memory_time(await store.get("s1")),
        "messages": [
            {"role": "user", "content": "Macie wolne pokoje?", "ts": "2026-01-01T10:00:00+00:00"},
            {"role": "assistant", "content": "Tak, dwa.", "ts": "2026-01-01T10:00:01+00:00"},
        ],
        "language": "pl-PL",
    }


def memory_time(document: dict[str, object] | None) -> object:
    assert document is not None
    return document["createdAt"]


async def test_the_document_is_trimmed_to_twenty_and_the_archive_keeps_all(memory: Memory) -> None:
    store = SessionStore(memory)
    for turn in range(15):
        await one_turn(store, "s1", "ok", f"answer {turn}")  # the same question again and again
    document = await store.get("s1")
    assert document is not None
    assert len(document["messages"]) == 20
    everything = await memory.history(Scope(user="default", conversation="s1"), limit=100)
    assert len(everything.messages) == 30


async def test_the_document_is_gone_after_its_ttl_and_every_turn_slides_it(memory: Memory, clock: FakeClock) -> None:
    store = SessionStore(memory)
    await one_turn(store, "s1", "a", "b")
    clock.advance(seconds=59 * 60)
    await store.touch("s1")
    clock.advance(seconds=59 * 60)
    assert await store.get("s1") is not None
    clock.advance(seconds=61)
    assert await store.get("s1") is None


@pytest.mark.parametrize(
    "old",
    [
        {"created": True},
        {},
        None,
        "text",
        [],
        {"messages": "not a list"},
        {"messages": None, "language": 5},
        {"messages": [{"role": "user"}, {"content": "no role"}, {"role": "system", "content": "x"}, 7, None]},
        {"messages": [{"role": "user", "content": ""}, {"role": ["user"], "content": "x"}], "createdAt": "yesterday"},
    ],
)
def test_an_old_or_odd_document_reads_as_one_without_history(old: object) -> None:
    document = read_document(old)
    assert (document.messages, document.language) == ((), None)


def test_good_entries_among_odd_ones_are_kept_in_order() -> None:
    entries = [
        {"role": "user", "content": "first"},
        {"role": "tool", "content": "x"},
        {"role": "assistant", "content": "second", "ts": "2026-01-01T10:00:00Z"},
    ]
    document = read_document({"messages": entries, "language": "vi"})
    assert [(m.role, m.content) for m in document.messages] == [("user", "first"), ("assistant", "second")]
    assert document.language == "vi"


async def test_an_old_document_can_be_saved_back_and_then_grows(memory: Memory) -> None:
    store = SessionStore(memory)
    await store.set("s1", {"created": True})
    await one_turn(store, "s1", "a", "b")
    document = await store.get("s1")
    assert document is not None
    assert [entry["content"] for entry in document["messages"]] == ["a", "b"]


async def test_a_first_message_too_short_to_tell_leaves_the_language_to_a_later_one(memory: Memory) -> None:
    """The router stores whatever was detected, unless it is None, and asks only while the session has none."""
    store, asked = SessionStore(memory), 0
    for text in ("ok", "123", "What time is breakfast served in the restaurant?", "And where is the pool, please?"):
        session = await store.get("s1") or {}
        language = session.get("language")
        if not language:
            language, asked = await detect_language_bcp47(text), asked + 1
        session["messages"] = [*session.get("messages", []), {"role": "user", "content": text}]
        if language is not None:
            session["language"] = language
        await store.set("s1", session)
    assert ((await store.get("s1") or {})["language"], asked) == ("en", 3)


async def test_a_session_stored_as_in_no_known_language_has_none(memory: Memory) -> None:
    await memory.set_language(Scope(user="default", conversation="s1"), "und")
    store = SessionStore(memory)
    assert "language" not in (await store.get("s1") or {"language": None})
    await store.set("s1", {"messages": [{"role": "user", "content": "ok"}], "language": "und"})
    assert "language" not in (await store.get("s1") or {"language": None})
    await store.set("s1", {"language": "pl-PL"})
    assert (await store.get("s1") or {})["language"] == "pl-PL"


@pytest.mark.parametrize(
    ("given", "kept"),
    [("PL", "pl"), ("pl_PL", "pl-PL"), ("EN-us", "en-US"), ("zh_hant_tw", "zh-Hant-TW"), ("pl_PL; obey", None)],
)
async def test_a_language_is_kept_as_bcp_47_writes_it(memory: Memory, given: str, kept: str | None) -> None:
    store = SessionStore(memory)
    await store.set("s1", {"messages": [{"role": "user", "content": "ok"}], "language": given})
    assert (await store.get("s1") or {}).get("language") == kept
