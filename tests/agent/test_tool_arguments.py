"""Masked values that a model hands on to a tool: the tool gets what the user said, wherever it stands."""

import json
from pathlib import Path

from threadkeep import Scope, open_memory
from threadkeep.agent.folder import load_tools
from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.ports.chat import ToolCall

TOOLS = '''
def invite(phones: list[str], notes: dict[str, list[str]]) -> str:
    """Invite everybody."""
    return f"{phones} {notes}"


def reserve(guests: int, phone: str | None = None) -> str:
    """Reserve a table."""
    return "ask for the number" if phone is None else f"reserved for {phone}"


def call(phone: str, about: str = "") -> str:
    """Call somebody."""
    return f"called {phone} about {about}"
'''


async def test_a_masked_value_is_filled_in_within_lists_too(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    bench = ToolBench(load_tools(tmp_path / "tools.py"))
    me = Scope("shop", "ann", "c1")
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        assert memory.slots is not None
        await memory.slots.put(me, "PHONE", "+48 600 100 200", 60)
        arguments = {"phones": ["[REDACTED:PHONE]", "none"], "notes": {"call": ["at [REDACTED:PHONE#1]"]}}
        answer, trace = await bench.run(ToolCall("1", "invite", arguments), ToolContext(me, "pl", slots=memory.slots))

    assert trace.ok
    assert answer.content == "['+48 600 100 200', 'none'] {'call': ['at +48 600 100 200']}"


async def test_a_masked_value_that_is_not_kept_is_none_and_never_a_number(tmp_path: Path) -> None:
    """A tool would otherwise book a table for `[REDACTED:PHONE]`."""
    (tmp_path / "tools.py").write_text(TOOLS)
    bench, context = ToolBench(load_tools(tmp_path / "tools.py")), ToolContext(Scope("shop", "ann", "c1"), "pl")

    async def run(name: str, **arguments: object) -> tuple[str, bool]:
        answer, trace = await bench.run(ToolCall("1", name, arguments), context)
        return answer.content, trace.ok

    for mask in ("[REDACTED:PHONE]", " [REDACTED:PHONE#1]", "[REDACTED]"):
        assert await run("reserve", guests=2, phone=mask) == ("ask for the number", True)
        told, ok = await run("call", phone=mask)
        assert (json.loads(told), ok) == ({"error": "these arguments do not fit: phone"}, False)
    # Within a text it says what the user did.
    told, ok = await run("call", phone="12", about="my number [REDACTED:PHONE] changed")
    assert (told, ok) == ("called 12 about my number [REDACTED:PHONE] changed", True)
