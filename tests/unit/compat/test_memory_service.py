"""A memory service that stores records in the archive, from plain code and from inside a running loop."""

from pathlib import Path
from typing import Any

import pytest

from threadkeep import Scope, SyncMemory
from threadkeep.compat import MemoryService
from threadkeep.errors import InvalidInput


def record(turns: int, **meta: Any) -> dict[str, Any]:
    return {
        "sessionId": "s1",
        "user_messages": [f"question {i}" for i in range(turns)],
        "user_media_summaries": [],
        "model_responses": [f"answer {i}" for i in range(turns)],
        "meta": {"locale": None, "intent": None, **meta},
    }


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
