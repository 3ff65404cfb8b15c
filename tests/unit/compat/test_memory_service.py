"""A memory service that stores records in the archive, from plain code and from inside a running loop."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from threadkeep import Scope, SyncMemory
from threadkeep.compat import MemoryService, persist_memory_from_session
from threadkeep.errors import InvalidInput


def record(turns: int, **meta: Any) -> dict[str, Any]:
    return {
        "sessionId": "s1",
        "user_messages": [f"question {i}" for i in range(turns)],
        "user_media_summaries": [],
        "model_responses": [f"answer {i}" for i in range(turns)],
        "meta": {"locale": None, "intent": None, **meta},
    }


START = datetime(2024, 11, 14, 10, tzinfo=UTC)
TALK = [
    ("user", "is there a cafe?"),
    ("voice", "asks for a quiet one"),
    ("model", "Two of them."),
    ("user", "yes"),
    ("user", "and open late?"),
    ("model", "Until ten."),
    ("model", "Shall I book?"),
    ("user", "yes"),
    ("model", "Booked."),
]


Clock = Callable[[datetime], Any]


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000)


def _local(at: datetime) -> datetime:
    return at.astimezone(timezone(timedelta(hours=7)))


def _naive(at: datetime) -> datetime:
    return at.replace(tzinfo=None)


def session(start: int = 0, stop: int = 99, ts: Clock | None = datetime.timestamp) -> list[Any]:
    """Events of a talk, one every ten seconds; `ts` says how a time is written."""
    events: list[Any] = []
    for number, (by, text) in enumerate(TALK[:stop]):
        kind = "ModelResponse" if by == "model" else "UserMessage"
        said = {"modality": by, "summary": text} if by == "voice" else {"modality": "text", "text": text}
        time = {"ts": ts(START + timedelta(seconds=10 * number))} if ts else {}
        events.append({"kind": kind, "channel": "text", **said, **time})
    return events[start:]


def persist(memory: SyncMemory, events: list[Any], **more: Any) -> None:
    """As a process does that knows nothing of what was stored before."""
    service = MemoryService(memory, user="u1")
    persist_memory_from_session(SimpleNamespace(id="s1", events=events, memory=service, **more))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SyncMemory]:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as opened:
        yield opened


def stored(memory: SyncMemory) -> list[str]:
    return [message.content for message in memory.history(Scope(user="u1", conversation="s1"), limit=100).messages]


def test_a_record_that_grows_turn_by_turn_is_stored_once_and_in_order(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        service = MemoryService(memory, user="u1")
        for turns in (1, 2, 3, 3):
            service.upsert(record(turns))
        again = MemoryService(memory, user="u1")  # a new process knows nothing of what was stored
        again.upsert(record(3))
        assert stored(memory) == [f"{what} {i}" for i in range(3) for what in ("question", "answer")]


def test_locale_and_a_redacted_intent_are_kept_with_the_conversation(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        MemoryService(memory, user="u1").upsert(record(1, locale="vi-VN", intent="mail an@example.com"))
        (kept,) = memory.export(Scope(user="u1"))
        assert (kept.language, kept.intent) == ("vi-VN", "mail [REDACTED:EMAIL]")
        meta = kept.as_memory_record()["meta"]
        assert (meta["locale"], meta["intent"]) == ("vi-VN", "mail [REDACTED:EMAIL]")


def test_a_media_summary_keeps_its_four_meta_keys(tmp_path: Path) -> None:
    meta = {"language": "pl", "mime": "image/png", "durationMs": None, "sha256": "b" * 64}
    item = {"summary": "a receipt", "modality": "image", "meta": meta}
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        MemoryService(memory, user="u1").upsert({**record(0), "user_media_summaries": [item]})
        (kept,) = memory.export()
        assert kept.as_memory_record()["user_media_summaries"] == [item]


async def test_inside_a_running_loop_upsert_returns_and_flush_waits(tmp_path: Path) -> None:
    memory = SyncMemory(f"sqlite:///{tmp_path}/memory.db").open()
    try:
        service = MemoryService(memory, user="u1")
        for turns in range(1, 6):
            service.upsert(record(turns))
        service.flush()
        assert len(stored(memory)) == 10
    finally:
        memory.close()


def test_a_record_without_a_session_is_refused(tmp_path: Path) -> None:
    with (
        SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory,
        pytest.raises(InvalidInput, match="sessionId"),
    ):
        MemoryService(memory, user="u1").upsert({"user_messages": ["x"]})


def test_a_new_talk_under_an_erased_session_id_is_kept_and_the_old_one_stays_erased(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        service = MemoryService(memory, user="u1")
        service.upsert(record(2))
        memory.erase(Scope(user="u1"))
        service.upsert(record(2))  # the agent still has the old session in hand
        assert stored(memory) == []
        service.upsert({**record(0), "user_messages": ["something new"]})
        assert stored(memory) == ["something new"]


@pytest.mark.parametrize(
    "ts",
    [datetime.timestamp, _milliseconds, datetime.isoformat, _local, _naive],
    ids=["seconds", "milliseconds", "iso", "local", "naive"],
)
def test_a_session_is_stored_in_its_order_and_with_its_times(memory: SyncMemory, ts: Clock) -> None:
    persist(memory, session(ts=ts))
    messages = memory.history(Scope(user="u1", conversation="s1"), limit=100).messages
    assert [one.content for one in messages] == [text for _, text in TALK]
    assert [one.ts for one in messages] == [START + timedelta(seconds=10 * n) for n in range(len(TALK))]
    (kept,) = memory.export(Scope(user="u1"))
    assert kept.as_memory_record()["meta"]["startedAt"] == START.isoformat()


@pytest.mark.parametrize("ts", [datetime.timestamp, None], ids=["timed", "untimed"])
def test_of_a_session_that_is_given_again_only_what_is_new_is_stored(memory: SyncMemory, ts: Any) -> None:
    """It grows, loses its oldest events, and is given as it was before."""
    for start, stop in ((0, 2), (0, 5), (2, 6), (4, 8), (4, 8), (5, 9), (0, 9), (0, 3)):
        persist(memory, session(start, stop, ts))
    assert stored(memory) == [text for _, text in TALK]


def test_the_same_words_at_the_same_time_are_kept_as_often_as_they_were_said(memory: SyncMemory) -> None:
    for _ in range(2):
        persist(memory, [{"kind": "UserMessage", "modality": "text", "text": "yes", "ts": 1}] * 2)
    assert stored(memory) == ["yes", "yes"]


def test_what_was_typed_beside_a_picture_stands_before_its_summary(memory: SyncMemory) -> None:
    picture = {"kind": "UserMessage", "modality": "image", "text": "can I eat this?", "summary": "a menu", "ts": 1}
    persist(memory, [picture, {"kind": "UserMessage", "modality": "text", "text": "", "ts": 2}])
    assert stored(memory) == ["can I eat this?", "a menu"]


def test_a_session_that_an_earlier_version_stored_is_not_stored_again(memory: SyncMemory) -> None:
    """Earlier versions knew a message by its place and text, also where it had a time."""
    persist(memory, session(stop=6, ts=None))
    (first, *_) = memory.history(Scope(user="u1", conversation="s1"), limit=100).messages
    memory.erase(Scope(user="u1", conversation="s1"), first.id)
    for start in (0, 0, 3):
        persist(memory, session(start))
    assert stored(memory) == [text for _, text in TALK[1:]]


def test_an_erased_session_that_is_still_in_hand_stays_erased(memory: SyncMemory) -> None:
    persist(memory, session(stop=5))
    memory.erase(Scope(user="u1"))
    persist(memory, session(2, 5))
    assert stored(memory) == []
    persist(memory, session(2, 7))
    assert stored(memory) == [text for _, text in TALK[5:7]]


def test_events_without_a_time_have_those_of_their_session(memory: SyncMemory) -> None:
    ended = [START + timedelta(minutes=one) for one in range(2)]
    for turn, stop in enumerate((2, 3)):
        times = {"startedAt": (START - timedelta(minutes=5)).timestamp(), "endedAt": ended[turn].timestamp() * 1_000}
        persist(memory, session(stop=stop, ts=None), **times)
    messages = memory.history(Scope(user="u1", conversation="s1"), limit=100).messages
    assert [one.ts for one in messages] == [START - timedelta(minutes=5), *ended]


@pytest.mark.parametrize("ts", ["soon", float("nan"), float("inf"), 1e300, True, "", [1], -(10**18)])
def test_a_time_that_is_none_is_left_out(memory: SyncMemory, ts: Any) -> None:
    before = datetime.now(UTC)
    persist(memory, session(stop=3, ts=lambda _: ts), startedAt=ts, endedAt=ts)
    messages = memory.history(Scope(user="u1", conversation="s1"), limit=100).messages
    assert [one.content for one in messages] == [text for _, text in TALK[:3]]
    assert min(one.ts for one in messages) >= before


@pytest.mark.parametrize("odd", ["a pasted log " * 100_000, ["a", "list"], 5])
def test_an_event_that_cannot_be_kept_costs_no_other_and_no_later_turn(odd: Any, memory: SyncMemory) -> None:
    said = [{"kind": "UserMessage", "modality": "text", "text": text} for text in ("first", odd, "then")]
    talk = SimpleNamespace(id="s1", events=said, memory=MemoryService(memory, "u42"))
    persist_memory_from_session(talk)
    talk.events.append({"kind": "UserMessage", "modality": "text", "text": "later"})
    persist_memory_from_session(talk)
    history = memory.history(Scope(user="u42", conversation="s1"))
    assert [one.content for one in history.messages] == ["first", "then", "later"]
