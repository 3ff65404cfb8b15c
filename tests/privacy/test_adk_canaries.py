"""A real ADK runner with tools: fifty turns, a thousand canaries in calls and results, none in any file."""

import json
from pathlib import Path

import pytest

from tests.adapters.adk.scripted import APP, call, runner_of, say, text, texts
from tests.privacy.test_canaries import everything_logged as everything_logged
from tests.privacy.test_canaries import exported
from tests.privacy.token_readers import every_encoding
from threadkeep import Settings, open_memory
from threadkeep.adapters.adk import ThreadkeepMemoryService, ThreadkeepPlugin, ThreadkeepSessionService
from threadkeep.models.token_bytes import unpack_ids
from threadkeep.testing.traces import Traces

TURNS = 50
CANARIES = [f"canary{number:04d}quill" for number in range(1_000)]


def needles(turn: int) -> list[str]:
    return CANARIES[turn * 20 : turn * 20 + 20]


@pytest.mark.usefixtures("everything_logged")
async def test_a_thousand_canaries_of_tools_leave_no_trace_in_any_file(tmp_path: Path) -> None:
    turns = iter(range(TURNS))

    def search(query: str, nested: list[str]) -> dict[str, list[str]]:
        """Search."""
        return {"rows": needles(next(turns))[10:]}

    script = []
    for turn in range(TURNS):
        script.append([text("One moment."), call("search", query=needles(turn)[0], nested=needles(turn)[1:10])])
        script.append([text(f"Answer {turn}.")])
    url, settings = f"sqlite:///{tmp_path}/memory.db", Settings(outward_log=str(tmp_path / "outward.jsonl"))
    scan = Traces(CANARIES, every_encoding(), unpack_ids)
    told = []
    async with (
        ThreadkeepSessionService.from_url(url, settings=settings) as service,
        ThreadkeepMemoryService.from_url(url, settings=settings) as memories,
    ):
        await service.create_session(app_name=APP, user_id="u1", session_id="c1")
        plugin = ThreadkeepPlugin(service, memories, lambda event: told.append(json.dumps(event)))
        runner = runner_of(script, service, [search], [plugin], memories)
        for turn in range(TURNS):
            events = await say(runner, "u1", "c1", f"Question {turn}?", recent=10)
            assert any(needle in str(events) for needle in needles(turn))  # it did go through the runner
        assert (tmp_path / "memory.db-wal").stat().st_size > 0
        assert scan.in_folder(tmp_path) == set()
        stored = await service.get_session(app_name=APP, user_id="u1", session_id="c1")
        async with open_memory(url) as memory:
            (tmp_path / "export.jsonl").write_text(await exported(memory))
        (tmp_path / "told.jsonl").write_text("\n".join(told))
    assert texts(stored) == [
        words for turn in range(TURNS) for words in (f"Question {turn}?", "One moment.", f"Answer {turn}.")
    ]
    assert scan.in_folder(tmp_path) == set()
    assert "Answer 49." in (tmp_path / "export.jsonl").read_text()
