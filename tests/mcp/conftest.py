"""A filled store, and official clients to servers on it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from mcp.client.client import Client

from tests.mcp.library import fill
from tests.mcp.stdio import stdio_transport


class Connect(Protocol):
    def __call__(self, *arguments: str, mode: str = "auto") -> AbstractAsyncContextManager[Client]: ...


@pytest.fixture
async def url(tmp_path: Path) -> str:
    where = f"sqlite:///{tmp_path}/tk.db"
    await fill(where)
    return where


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """`async with connect("--url", url) as client`: a real `threadkeep mcp` process and the SDK's client."""

    @asynccontextmanager
    async def connected(*arguments: str, mode: str = "auto") -> AsyncGenerator[Client]:
        with (tmp_path / "server.log").open("a") as log:
            async with Client(stdio_transport(*arguments, log=log), mode=mode) as client:  # type: ignore[arg-type]
                yield client

    return connected
