"""Ids that a client gives beside its text hold no personal data once they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.database import every_value
from tests.mcp.answers import connected, told
from tests.mcp.library import fill
from threadkeep import ModelResponse, Scope, UserMessage, open_memory
from threadkeep.errors import InvalidEvent

ME = Scope("shop", "ann", "c1")


async def test_an_answer_may_not_name_its_question_by_personal_data(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/m.db") as memory:
        for raw in ("ann@example.com", "+48 601 234 567"):
            with pytest.raises(InvalidEvent, match=r"events\[1\]\.answers: holds personal data"):
                await memory.append(ME, [UserMessage("hello"), ModelResponse("Hi.", answers=raw)])
        assert (await memory.history(ME)).messages == ()
        await memory.append(ME, [UserMessage("hello", id="m-1"), ModelResponse("Hi.", answers="m-1")])
        assert (await memory.history(ME)).messages[1].meta == {"answers": "m-1"}


async def test_a_request_id_is_echoed_to_its_sender_and_kept_as_a_digest(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tk.db"
    await fill(url)
    meta = {"vscode.conversationId": "talk-1", "vscode.requestId": "ann@example.com"}
    async with connected(url) as client:
        answer = told(await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=meta))
    assert answer["metrics"]["requestId"] == "ann@example.com"
    assert not [value for value in await every_value(url) if b"ann@example.com" in value]
