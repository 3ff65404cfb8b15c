"""A ReAct agent that is killed between a tool call and its result: nothing is lost, and no call is shown unpaired."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.adapters.agent import unpaired
from tests.adapters.mortal import THREADS
from tests.adapters.verbs import Open, Verbs, thread

ROOT = Path(__file__).parents[2]


def kills(url: str, traffic: str) -> int:
    """Elsewhere than on SQLite a few will do from day to day: it is not the server that dies."""
    if os.environ.get("CHAOS") == "full":
        return 200
    if not url.startswith("sqlite"):
        return 6  # more than there are threads
    return 20 if traffic == "keep" else 10


@pytest.fixture(params=["keep", "turn"])
def traffic(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def mortal(url: str, user: str, traffic: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.adapters.mortal", url, user, traffic]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def one_life(process: subprocess.Popen[str]) -> str:
    """What it was looking up when it was killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    told: dict[str, Any] = {}
    while "in_tool" not in told:
        line = process.stdout.readline()
        told |= json.loads(line or '{"problem": "it ended"}')
        assert "problem" not in told, told
    os.kill(told["life"], signal.SIGKILL)
    return told["in_tool"]


async def check(saver: Verbs, config: dict[str, Any], argument: str) -> None:
    """What was stored when it died is exact; what is told of it shows no call without its result."""
    found = await saver.get(config)
    assert found is not None
    messages = found.checkpoint["channel_values"]["messages"]
    call = messages[-1].tool_calls[0]
    assert call["args"] == {"what": argument}
    assert unpaired(messages) == [call["id"]]
    said = await saver.call("history", config)
    assert unpaired(said) == []
    assert [type(one) for one in said[-2:]] == [HumanMessage, AIMessage]
    assert said[-1].content == "Looking up 0."


@pytest.mark.timeout(3_600 if os.environ.get("CHAOS") == "full" else 900)
@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_a_killed_agent_completes_the_pair_when_it_comes_back(
    open_saver: Open, mortal: subprocess.Popen[str], traffic: str, url: str
) -> None:
    saver = await open_saver(tool_traffic=traffic)
    for number in range(kills(url, traffic)):
        argument = await asyncio.to_thread(one_life, mortal)
        await check(saver, thread(f"t{number % THREADS}"), argument)
    for number in range(THREADS):
        config = thread(f"t{number}")
        for one in await saver.list(config):
            calls = unpaired(one.checkpoint["channel_values"].get("messages", []))
            assert len(calls) <= 1, "a call that was never answered stands behind another"
        if traffic == "turn":
            assert await saver.call("end_turn", config, abandon=True)
            kept = (await saver.values(config))["messages"]
            assert not any(getattr(one, "tool_calls", ()) or one.type == "tool" for one in kept)
