"""The hotel concierge's sessions, driven the way its router drives them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from threadkeep import Memory, Scope, open_memory
from threadkeep.compat import SessionStore
from threadkeep.settings import load_settings
from threadkeep.testing.clock import FakeClock

Document = dict[str, Any]
Wire = Callable[[Document | None], Document | None]
WIRES: list[Wire] = [lambda document: document, lambda document: json.loads(json.dumps(document))]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def opened(tmp_path: Path, clock: FakeClock) -> Callable[[], AbstractAsyncContextManager[Memory]]:
    """A memory on the settings that the environment holds when it is opened."""
    return lambda: open_memory(f"sqlite:///{tmp_path}/hotel.db", settings=load_settings(), clock=clock)


@pytest.fixture
async def store(opened: Callable[[], AbstractAsyncContextManager[Memory]]) -> AsyncIterator[SessionStore]:
    async with opened() as memory:
        yield SessionStore(memory)


def with_turn(session: Document | None, question: str, answer: str, limit: int = 20) -> Document:
    """The router after the reply: `messages = history + [...]`, cut to the limit, and the language always set."""
    session = session or {}
    history = session.get("messages", [])
    history = history if isinstance(history, list) else []
    now = datetime.now(UTC).isoformat()
    said = [{"role": "user", "content": question, "ts": now}, {"role": "assistant", "content": answer, "ts": now}]
    session["messages"] = (history + said)[-limit:]
    session["language"] = "pl-PL"
    return session


async def talk(store: SessionStore, turns: int, limit: int = 20) -> None:
    for turn in range(turns):
        await store.set("s1", with_turn(await store.get("s1"), f"pytanie {turn}", f"odpowiedź {turn}", limit))


def contents(session: Document | None) -> list[str]:
    assert session is not None
    return [entry["content"] for entry in session["messages"]]


@pytest.mark.parametrize(("value", "expected"), [(None, 20), ("7", 7), ("40", 40)])
async def test_the_environment_says_how_many_of_the_newest_messages_a_session_holds(
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[[], AbstractAsyncContextManager[Memory]],
    value: str | None,
    expected: int,
) -> None:
    if value:
        monkeypatch.setenv("SESSION_MAX_MESSAGES", value)
    async with opened() as memory:
        await talk(store := SessionStore(memory), 25, limit=1_000)  # the store trims, whatever the router does
        everything = [text for turn in range(25) for text in (f"pytanie {turn}", f"odpowiedź {turn}")]
        assert contents(await store.get("s1")) == everything[-expected:]
        window = await memory.history(Scope(user="default", conversation="s1"))
        assert [message.content for message in window.messages] == everything[-expected:]


async def test_the_window_is_as_long_as_the_authors_slice_after_every_turn(store: SessionStore) -> None:
    for turns in range(1, 31):
        await store.set("s1", with_turn(await store.get("s1"), "to samo", "zawsze"))
        assert len(contents(await store.get("s1"))) == min(2 * turns, 20)


async def test_after_its_time_a_document_holds_only_what_was_said_since(store: SessionStore, clock: FakeClock) -> None:
    await talk(store, 3)
    clock.advance(61 * 60)
    assert await store.get("s1") is None
    await store.set("s1", with_turn(None, "nowe pytanie", "nowa odpowiedź"))
    assert contents(await store.get("s1")) == ["nowe pytanie", "nowa odpowiedź"]
    await store.set("s1", with_turn(await store.get("s1"), "i jeszcze", "proszę"))
    assert contents(await store.get("s1")) == ["nowe pytanie", "nowa odpowiedź", "i jeszcze", "proszę"]


@pytest.mark.parametrize("begun_by", ["touch", "set"])
async def test_after_its_time_a_session_has_no_language_until_one_is_set(
    store: SessionStore, clock: FakeClock, begun_by: str
) -> None:
    await talk(store, 2)
    clock.advance(61 * 60)
    if begun_by == "touch":
        await store.touch("s1")
        assert contents(await store.get("s1")) == []
    else:
        await store.set("s1", {"messages": [{"role": "user", "content": "Is there a pool?"}]})
        assert contents(await store.get("s1")) == ["Is there a pool?"]
    session = await store.get("s1")
    assert "language" not in (session or {"language": None})

    await store.set("s1", with_turn(session, "And where is it?", "In the cellar.") | {"language": "en-GB"})
    assert (await store.get("s1") or {})["language"] == "en-GB"

    clock.advance(61 * 60)
    await store.set("s1", with_turn(None, "A basen?", "W piwnicy.") | {"language": "en-GB"})  # the same as before
    assert (await store.get("s1") or {})["language"] == "en-GB"


@pytest.mark.parametrize(("value", "kept"), [(None, 20), ("20000", 2)])
async def test_characters_limit_the_window_only_when_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[[], AbstractAsyncContextManager[Memory]],
    value: str | None,
    kept: int,
) -> None:
    if value:
        monkeypatch.setenv("SESSION_MAX_CHARS", value)
    async with opened() as memory:
        store = SessionStore(memory)
        for _ in range(10):
            await store.set("s1", with_turn(await store.get("s1"), "ż" * 10_000, "ó" * 10_000))
        assert len(contents(await store.get("s1"))) == kept


async def test_the_environment_says_for_how_many_minutes_a_session_lives_after_its_last_use(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[], AbstractAsyncContextManager[Memory]], clock: FakeClock
) -> None:
    monkeypatch.setenv("SESSION_TTL_MIN", "5")
    async with opened() as memory:
        store = SessionStore(memory)
        for _ in range(3):
            await talk(store, 1)
            clock.advance(299)
            assert await store.get("s1") is not None
        await store.touch("s1")
        clock.advance(299)
        assert await store.get("s1") is not None
        clock.advance(1)
        assert await store.get("s1") is None


async def test_a_document_is_written_and_read_back_with_its_messages_and_language(store: SessionStore) -> None:
    written = with_turn(None, "Czy są wolne pokoje?", "Tak, dwa.")
    await store.set("s1", written)
    read = await store.get("s1")
    assert read is not None
    assert set(read) == {"createdAt", "messages", "language"}
    assert (read["messages"], read["language"]) == (written["messages"], "pl-PL")
    assert all(datetime.fromisoformat(entry["ts"]).tzinfo for entry in read["messages"])
    await store.set("s1", read | {"language": "en-GB"})
    assert (await store.get("s1") or {})["language"] == "en-GB"


@pytest.mark.parametrize(
    "old", [{"created": True}, {}, {"messages": "Dzień dobry"}, {"messages": {"0": "x"}}, {"messages": None}]
)
async def test_a_session_of_an_old_shape_goes_on_as_one_without_history(store: SessionStore, old: Document) -> None:
    await store.set("s1", old)
    read = await store.get("s1")
    assert contents(read) == []
    assert "language" not in (read or {})
    await store.set("s1", with_turn(dict(old), "Dzień dobry", "Witam"))
    assert contents(await store.get("s1")) == ["Dzień dobry", "Witam"]


@pytest.mark.parametrize("wire", WIRES, ids=["as it was got", "through JSON"])
@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_parallel_requests_on_one_session_all_stay_and_none_is_doubled(
    store: SessionStore, wire: Wire, turns: int
) -> None:
    await talk(store, turns)
    before = contents(await store.get("s1")) if turns else []
    read = [wire(await store.get("s1")) for _ in range(3)]  # all read before any of them writes
    answers = [with_turn(read[place], f"pytanie {name}", f"odpowiedź {name}") for place, name in enumerate("abc")]
    await store.set("s1", answers[0])
    await asyncio.gather(*(store.set("s1", answer) for answer in answers[1:]))
    after = contents(await store.get("s1"))
    assert after[: len(before)] == before
    assert sorted(after[len(before) :]) == sorted(f"{what} {n}" for n in "abc" for what in ("pytanie", "odpowiedź"))


async def test_parallel_requests_on_a_full_session_double_nothing(
    opened: Callable[[], AbstractAsyncContextManager[Memory]],
) -> None:
    async with opened() as memory:
        await talk(store := SessionStore(memory), 15)
        read = [await store.get("s1") for _ in range(12)]  # more turns than the window holds
        for number, session in enumerate(read):
            await store.set("s1", with_turn(session, f"q{number}", f"a{number}"))
        everything = await memory.history(Scope(user="default", conversation="s1"), limit=1_000)
        said = [message.content for message in everything.messages]
        assert len(said) == len(set(said)) == 30 + 24


async def test_a_turn_that_was_under_way_does_not_bring_erased_history_back(
    opened: Callable[[], AbstractAsyncContextManager[Memory]],
) -> None:
    async with opened() as memory:
        await talk(store := SessionStore(memory), 2)
        session = await store.get("s1")
        await memory.erase(Scope(user="default", conversation="s1"))
        await store.set("s1", with_turn(session, "nowe", "tak"))
        assert contents(await store.get("s1")) == ["nowe", "tak"]


async def test_entries_of_another_session_are_new_in_this_one(store: SessionStore) -> None:
    await talk(store, 1)
    await store.set("s2", await store.get("s1"))
    assert contents(await store.get("s2")) == ["pytanie 0", "odpowiedź 0"]
