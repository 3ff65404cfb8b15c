"""Masked values that a model hands on to a tool: the tool gets what the user said, wherever it stands."""

from pathlib import Path

from threadkeep import Scope, open_memory
from threadkeep.agent.tool_file import load_tools
from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.ports.chat import ToolCall

TOOLS = '''
def invite(phones: list[str], notes: dict[str, list[str]]) -> str:
    """Invite everybody."""
    return f"{phones} {notes}"
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
