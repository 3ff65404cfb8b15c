"""Erasing a conversation takes the copies of its thread with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fronts.databases import own_database
from threadkeep import Scope, Settings, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver

CHECKPOINT: Any = {
    "v": 1,
    "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
    "ts": "2026-01-01T00:00:00+00:00",
    "channel_values": {"said": "my secret is a violet orchid"},
    "channel_versions": {"said": 1},
    "versions_seen": {},
}


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
async def test_erasing_a_conversation_takes_copies_of_its_thread_and_copies_of_these(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    if kind == "sqlite":
        await _erases_copies(f"sqlite:///{tmp_path}/memory.db")
        return
    async with own_database(request.getfixturevalue(f"{kind}_server").url) as url:
        await _erases_copies(url)


async def _erases_copies(url: str) -> None:
    settings = Settings(embedder="none")
    async with ThreadkeepSaver.from_url(url, user="anna", settings=settings) as saver:
        for thread in ("first", "another"):
            place: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            await saver.aput(place, CHECKPOINT, {"source": "input", "step": 0, "parents": {}}, {"said": 1})
        for source, target in (("first", "copy"), ("copy", "copy of it"), ("another", "copy of another")):
            await saver.acopy_thread(source, target)
        await saver.adelete_thread("copy")
        async with open_memory(url, settings=settings) as memory:
            proof = await memory.erase(Scope(user="anna", conversation="first"))
        assert proof.complete
        left = {
            thread: await saver.aget_tuple({"configurable": {"thread_id": thread}}) is not None
            for thread in ("first", "copy", "copy of it", "another", "copy of another")
        }
    assert left == {"first": False, "copy": False, "copy of it": False, "another": True, "copy of another": True}
