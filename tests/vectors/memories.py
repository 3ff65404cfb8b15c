"""Memories that embed, on every place vectors may be kept."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uuid_utils

from tests.servers.chroma import ChromaServer
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.ports.index import Near
from threadkeep.worker.embedding import EmbedParts

PLACES = ["sqlite", "postgres", "mariadb", "chroma-folder", "chroma-server"]
PROGRAM = str(Path(sys.executable).with_name("chroma"))


@dataclass(frozen=True, slots=True)
class Embedded:
    """A memory and, for looking behind it, the parts it embeds with."""

    memory: Memory
    parts: EmbedParts

    async def near(self, scope: Scope, question: str, k: int = 10) -> list[Near]:
        nearest = self.memory._stores.nearest
        assert nearest is not None
        return list(await nearest(scope, question, k))

    async def vectors(self, scope: Scope | None = None) -> int:
        """How many messages have any, whatever the model."""
        return sum((await self.parts.stores.index.models(scope)).values())


Open = Callable[..., AbstractAsyncContextManager[Embedded]]


def opening(url: str, **fixed: Any) -> Open:
    @asynccontextmanager
    async def open_(**changes: Any) -> AsyncIterator[Embedded]:
        redis = changes.pop("redis", None)
        settings = Settings().model_copy(update={**fixed, **changes})
        async with open_memory(url, redis=redis, settings=settings) as memory:
            embedding: Any = memory._stores.embedding
            yield Embedded(memory, await embedding._make())

    return open_


def new_user() -> Scope:
    return Scope("shop", f"u-{uuid_utils.uuid7()}", "c1")


@pytest.fixture(scope="module")
def chroma_server() -> Iterator[ChromaServer]:
    with ChromaServer(PROGRAM) as server:
        yield server


@pytest.fixture(params=PLACES)
def open_at(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """`async with open_at(embedder=…) as embedded`, as often as wanted, on the same stores."""
    place, file = request.param, f"sqlite:///{tmp_path}/memory.db"
    if place == "postgres":
        return opening(request.getfixturevalue("postgres_server").url)
    if place == "mariadb":
        return opening(request.getfixturevalue("mariadb_server").url)
    if place == "chroma-folder":
        return opening(file, chroma_path=str(tmp_path / "chroma"))
    if place == "chroma-server":
        return opening(file, chroma_path=request.getfixturevalue("chroma_server").url)
    return opening(file)
