"""Assistants of the examples, on a SQLite file of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.recording import CountedDetector
from tests.agent.running_hotel import EXAMPLES, hotel
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.agent.assistant import Assistant
from threadkeep.compose.assistant import open_assistant
from threadkeep.models.language import OfflineDetector
from threadkeep.ports.chat import Answer, Asked
from threadkeep.ports.clock import Clock, system_clock

__all__ = ["EXAMPLES", "hotel"]

# By words alone: what is tested here is the talk, and it should not wait for vectors.
SETTINGS = Settings().model_copy(update={"embedder": "none"})


class WatchedGraph:
    """The assistant's graph, which also remembers the state that the latest turn ended with."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.state: dict[str, Any] = {}

    async def ainvoke(self, *given: Any, **options: Any) -> dict[str, Any]:
        self.state = await self._graph.ainvoke(*given, **options)
        return self.state


@dataclass
class Talk:
    """One conversation with an assistant."""

    assistant: Assistant
    graph: WatchedGraph
    memory: Memory
    detector: CountedDetector
    scope: Scope

    async def say(self, text: str, **asked: Any) -> Answer:
        return await self.assistant.respond(Asked(self.scope, text, **asked))

    async def kept(self) -> list[tuple[str, str]]:
        return [(one.role, one.content) for one in (await self.memory.history(self.scope, limit=500)).messages]


def concierge(tmp_path: Path, scope: str | None = None) -> Path:
    """The hotel's folder, with another scope of recall or with none named."""
    folder = Path(shutil.copytree(EXAMPLES / "hotel_concierge", tmp_path / "concierge"))
    lines = (folder / "assistant.toml").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("recall_scope")]
    if scope is not None:
        kept.insert(1, f'recall_scope = "{scope}"')
    (folder / "assistant.toml").write_text("\n".join(kept))
    return folder


Open = Callable[..., AbstractAsyncContextManager[Talk]]


@pytest.fixture
def talk_with(tmp_path: Path) -> Open:
    """`async with talk_with("pc_shop", model=…) as talk`."""

    @asynccontextmanager
    async def opened(
        folder: str | Path,
        model: Any = None,
        url: str | None = None,
        redis: str | None = None,
        clock: Clock = system_clock,
        own_detector: bool = True,
        **settings: Any,
    ) -> AsyncIterator[Talk]:
        where = url or f"sqlite:///{tmp_path}/memory.db"
        chosen = SETTINGS.model_copy(update=settings)
        detector = CountedDetector(OfflineDetector())
        counted = detector if own_detector else None  # otherwise the one that the settings name
        path = EXAMPLES / folder
        async with (
            open_memory(where, redis=redis, settings=chosen, detector=detector, clock=clock) as memory,
            open_assistant(memory, chosen, path, url=where, model=model, detector=counted) as assistant,
        ):
            assistant._graph = watched = WatchedGraph(assistant._graph)
            yield Talk(assistant, watched, memory, detector, Scope("default", "guest", "talk-1"))

    return opened
