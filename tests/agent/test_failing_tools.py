"""Tools that raise what ends processes, never return, or answer what cannot be sent: the model is told, and no more."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from threadkeep import Scope
from threadkeep.agent.folder import load_tools
from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.ports.chat import ToolCall

HERE = ToolContext(Scope("shop", "ann", "c1"), "pl")
TOOLS = '''
import asyncio, functools, sys, threading
from threadkeep.agent.tools import ToolContext

GO_ON = threading.Event()

def leaves() -> str:
    """Leave."""
    sys.exit(3)

async def leaves_the_loop() -> str:
    """Leave."""
    raise SystemExit(3)

async def is_cancelled() -> str:
    """Be cancelled by what it waits for."""
    raise asyncio.CancelledError

def has_no_more() -> str:
    """Take the next of nothing."""
    return next(iter(()))

def hangs() -> str:
    """Never come back."""
    GO_ON.wait()
    return "late"

def half() -> str:
    """Half a character."""
    return "caf\\ud83d"

def tells_an_error() -> dict:
    """Tell what went wrong, as tools do that raise nothing."""
    return {"error": "the hotel answered 503"}

def tells_no_error() -> dict:
    """Tell that nothing went wrong."""
    return {"error": None, "rooms": 3}

def _noted(function):
    @functools.wraps(function)
    def noted(*given, **named):
        return function(*given, **named)
    return noted

@_noted
async def decorated() -> str:
    """Decorated by one who does not know of coroutines."""
    return "three rooms"

def behind(room: str, context: ToolContext) -> str:
    """Its context is not the first."""
    return f"{room} {context.language}"
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    return path


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("leaves", "the tool failed (SystemExit)"),
        ("leaves_the_loop", "the tool failed (SystemExit)"),
        ("is_cancelled", "the tool failed (CancelledError)"),
        ("has_no_more", "the tool failed (StopIteration)"),
    ],
)
async def test_whatever_a_tool_raises_the_turn_goes_on(tools: Path, name: str, told: str) -> None:
    answer, trace = await ToolBench(load_tools(tools)).run(ToolCall("1", name, {}), HERE)

    assert (trace.ok, told in answer.content) == (False, True), answer.content


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [("decorated", {}, "three rooms"), ("half", {}, "caf?"), ("behind", {"room": "12"}, "12 pl")],
)
async def test_what_a_tool_answers_is_text(tools: Path, name: str, arguments: dict[str, str], told: str) -> None:
    answer, trace = await ToolBench(load_tools(tools)).run(ToolCall("1", name, arguments), HERE)

    assert (trace.ok, answer.content) == (True, told)


async def test_tools_that_never_return_hold_up_nothing_else(tools: Path) -> None:
    loaded = load_tools(tools)
    bench = ToolBench(loaded, seconds=0.05)
    released: threading.Event = loaded[0].function.__globals__["GO_ON"]
    try:
        calls = [bench.run(ToolCall("1", "hangs", {}), HERE) for _ in range((os.cpu_count() or 1) + 40)]
        done = await asyncio.gather(*calls)
        async with asyncio.timeout(10):
            others = await asyncio.to_thread(lambda: "others go on")
    finally:
        released.set()

    assert {answer.content for answer, _ in done} == {'{"error": "the tool took too long"}'}
    assert others == "others go on"


async def test_a_turn_that_is_given_up_is_not_taken_for_a_tools_failure(tools: Path) -> None:
    loaded = load_tools(tools)
    turn = asyncio.create_task(ToolBench(loaded).run(ToolCall("1", "hangs", {}), HERE))
    await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    loaded[0].function.__globals__["GO_ON"].set()


async def test_a_tool_that_returns_an_error_is_traced_as_one(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    bench = ToolBench(load_tools(tmp_path / "tools.py"))
    said, trace = await bench.run(ToolCall("1", "tells_an_error", {}), HERE)
    assert (trace.status, said.content) == ("ERROR", '{"error": "the hotel answered 503"}')
    _, trace = await bench.run(ToolCall("2", "tells_no_error", {}), HERE)
    assert trace.status == "OK"
