"""Of a recording the model that answers has the words; whatever is kept, looked up or thought of later, the summary."""

from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Open
from tests.agent.recording import RecordingModel
from tests.media.test_remembered import library
from threadkeep import Memory, UserMessage

WORDS = "Good day. Is breakfast included? It is for canarywords0001quill."
SPOKEN = UserMessage(modality="voice", summary="Asks about breakfast.", meta={"mime": "audio/wav"})


async def test_the_words_of_a_recording_reach_the_answer_and_nothing_that_is_kept(
    talk_with: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    recall = Memory.recall

    async def noted(self: Memory, scope: Any, query: str, *arguments: Any, **options: Any) -> Any:
        looked_up.append(query)
        return await recall(self, scope, query, *arguments, **options)

    monkeypatch.setattr(Memory, "recall", noted)
    model = RecordingModel("Noted.")
    async with talk_with(library(tmp_path / "desk"), model=model) as talk:
        await talk.say(WORDS, event=SPOKEN)
        await talk.assistant.settled()
        kept = await talk.kept()
        reflections = await talk.memory.reflections(talk.scope)

    assert model.requests[0].messages[-1].content == WORDS
    assert [content for role, content in kept if role == "user"] == ["Asks about breakfast."]
    assert talk.graph.state["chat_history"][0]["content"] == "Asks about breakfast."
    assert looked_up == ["Asks about breakfast."]
    assert "Asks about breakfast." in model.requests[1].messages[-1].content  # to be reflected on
    assert reflections
    assert "canarywords0001quill" not in str([talk.graph.state, reflections, model.requests[1:], kept])
