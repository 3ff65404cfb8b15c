"""Of whom the assistant recalls: of one user in all conversations, or of the conversation alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import Open, Talk, concierge
from tests.agent.recording import RecordingModel
from threadkeep import Scope, UserMessage
from threadkeep.scope import ANONYMOUS, DEFAULT_TENANT, DEFAULT_USER

TOLD, ASKED = "I am staying in room 214.", "Which room am I staying in?"
FENCE = '<memory trust="none"'


async def told_in_another_conversation(talk: Talk, user: str) -> str:
    """What a guest's question in a second conversation makes the model, or the assistant, see of the first."""
    talk.scope = Scope(DEFAULT_TENANT, user, "guest-a")
    await talk.memory.append(talk.scope, [UserMessage(TOLD)])
    talk.scope = Scope(DEFAULT_TENANT, user, "guest-b")
    return (await talk.say(ASKED)).text


@pytest.mark.parametrize("user", [DEFAULT_USER, ANONYMOUS])
@pytest.mark.parametrize("scope", [None, "user"])
async def test_users_whom_nobody_named_are_many_and_one_is_never_quoted_to_another(
    talk_with: Open, tmp_path: Path, user: str, scope: str | None
) -> None:
    model = RecordingModel()
    async with talk_with(concierge(tmp_path, scope), model) as talk:
        await told_in_another_conversation(talk, user)
    assert "214" not in model.requests[-1].system
    async with talk_with(concierge(tmp_path / "offline", scope)) as talk:
        assert "214" not in await told_in_another_conversation(talk, user)


async def test_a_named_user_is_recalled_from_all_their_conversations_unless_the_folder_says_otherwise(
    talk_with: Open, tmp_path: Path
) -> None:
    model = RecordingModel()
    async with talk_with(concierge(tmp_path), model) as talk:
        await told_in_another_conversation(talk, "ann")
    system = model.requests[-1].system
    assert TOLD in system[system.index(FENCE) :]


@pytest.mark.parametrize("folder", ["hotel_concierge", "pc_shop"])
async def test_the_examples_recall_within_the_conversation(talk_with: Open, folder: str) -> None:
    model = RecordingModel()
    async with talk_with(folder, model) as talk:
        talk.scope = Scope(DEFAULT_TENANT, "ann", "guest-a")
        await talk.memory.append(talk.scope, [UserMessage("I want to buy a graphics card, my office is room 214.")])
        talk.scope = Scope(DEFAULT_TENANT, "ann", "guest-b")
        await talk.say("What is the price of a graphics card?")
    assert "214" not in model.requests[-1].system


async def test_within_the_conversation_what_has_left_the_window_is_recalled(talk_with: Open) -> None:
    model = RecordingModel()
    async with talk_with("hotel_concierge", model, session_max_messages=2) as talk:
        talk.scope = Scope(DEFAULT_TENANT, DEFAULT_USER, "guest-a")
        for text in (TOLD, "Is there a pool?", "Is breakfast included?", ASKED):
            await talk.say(text)
    request = model.requests[-1]
    assert "214" not in " ".join(text for _, text in model.turns)
    assert TOLD in request.system[request.system.index(FENCE) :]
