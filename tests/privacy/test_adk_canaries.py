"""A real ADK runner with tools: fifty turns, a thousand canaries in calls and results, none in any store or file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.adk.scripted import APP, call, runner_of, say, text, texts
from tests.privacy.in_servers import in_database, in_redis, own_database
from tests.privacy.test_canaries import everything_logged as everything_logged
from tests.privacy.test_canaries import exported
from tests.privacy.token_readers import every_encoding
from tests.servers.redis import RedisServer
from threadkeep import Settings, open_memory
from threadkeep.adapters.adk import ThreadkeepMemoryService, ThreadkeepPlugin, ThreadkeepSessionService
from threadkeep.testing.traces import Trace, Traces

TURNS = 50
CANARIES = [f"canary{number:04d}quill" for number in range(1_000)]


def needles(turn: int) -> list[str]:
    return CANARIES[turn * 20 : turn * 20 + 20]


@pytest.fixture(params=["sqlite", "redis and postgres", "redis and mariadb"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, new_redis: Callable[..., RedisServer]
) -> Iterator[dict[str, Any]]:
    """Keyword arguments of `from_url`."""
    server = request.param.rpartition(" ")[2]
    if server == "sqlite":
        yield {"url": f"sqlite:///{tmp_path}/memory.db"}
        return
    with own_database(request.getfixturevalue(f"{server}_server").url) as url:
        yield {"url": url, "redis": new_redis().url}


async def traces(scan: Traces, place: dict[str, Any], folder: Path) -> set[Trace]:
    found = scan.in_folder(folder)
    if "redis" in place:
        found |= await in_database(scan, place["url"]) | in_redis(scan, place["redis"])
    return found


@pytest.mark.usefixtures("everything_logged")
async def test_a_thousand_canaries_of_tools_leave_no_trace_in_any_store_or_file(
    tmp_path: Path, place: dict[str, Any]
) -> None:
    turns = iter(range(TURNS))

    async def search(query: str, nested: list[str]) -> dict[str, list[str]]:
        """Search."""
        turn = next(turns)
        if turn == TURNS - 1:
            in_flight.append(await traces(scan, place, tmp_path))
        return {"rows": needles(turn)[10:]}

    script = []
    for turn in range(TURNS):
        script.append([text("One moment."), call("search", query=needles(turn)[0], nested=needles(turn)[1:10])])
        script.append([text(f"Answer {turn}.")])
    settings = Settings(outward_log=str(tmp_path / "outward.jsonl"))
    scan, control = Traces(CANARIES, every_encoding()), Traces(["Answer 49."])
    told, in_flight = list[str](), list[set[Trace]]()
    async with (
        ThreadkeepSessionService.from_url(**place, settings=settings) as service,
        ThreadkeepMemoryService.from_url(**place, settings=settings) as memories,
    ):
        await service.create_session(app_name=APP, user_id="u1", session_id="c1")
        plugin = ThreadkeepPlugin(service, memories, lambda event: told.append(json.dumps(event)))
        runner = runner_of(script, service, [search], [plugin], memories)
        for turn in range(TURNS):
            events = await say(runner, "u1", "c1", f"Question {turn}?", recent=10)
            assert any(needle in str(events) for needle in needles(turn))  # it did go through the runner
        assert in_flight == [set()]  # the call was stored by then, encrypted
        # While it is open: SQLite's write-ahead log is still there, and Redis has what the archive has not yet.
        assert "redis" in place or (tmp_path / "memory.db-wal").stat().st_size > 0
        assert await traces(scan, place, tmp_path) == set()
        stored = await service.get_session(app_name=APP, user_id="u1", session_id="c1")
        async with open_memory(**place) as memory:
            await memory.flushed()
            (tmp_path / "export.jsonl").write_text(await exported(memory))
        (tmp_path / "told.jsonl").write_text("\n".join(told))
    assert texts(stored) == [
        words for turn in range(TURNS) for words in (f"Question {turn}?", "One moment.", f"Answer {turn}.")
    ]
    assert await traces(scan, place, tmp_path) == set()
    assert {"export.jsonl", "told.jsonl", "outward.jsonl"} <= {one.file for one in control.in_folder(tmp_path)}
    if "redis" in place:
        assert await in_database(control, place["url"])
        assert in_redis(control, place["redis"])
