"""The service on a loopback port, in this process, with tokens and an audience."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import jwt
import uvicorn
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from threadkeep.http.app import create_app
from threadkeep.settings import Settings

SECRET = "j" * 32
AUDIENCE = "https://memory.example.com/mcp"


def settings_for(url: str, **more: Any) -> Settings:
    given = {"DATABASE_URL": url, "THREADKEEP_JWT_SECRET": SECRET, "THREADKEEP_JWT_AUDIENCE": AUDIENCE}
    return Settings(**(given | more))  # type: ignore[arg-type]


def token(user: str = "ann", seconds: float = 600, **claims: Any) -> str:
    body = {"sub": user, "aud": AUDIENCE, "exp": datetime.now(UTC) + timedelta(seconds=seconds)} | claims
    return jwt.encode(body, SECRET, "HS256")


def bearer(user: str = "ann", seconds: float = 600, **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(user, seconds, **claims)}"}


@asynccontextmanager
async def served(settings: Settings, **parts: Any) -> AsyncGenerator[str]:
    """Yield the service's address. `parts` go to `create_app`."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(settings, **parts), log_config=None, access_log=False, timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    with server.capture_signals():
        running = asyncio.create_task(server._serve([listening]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
            assert not running.done(), "the service did not start"
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listening.close()


@asynccontextmanager
async def over_http(url: str, headers: dict[str, str], mode: str = "auto") -> AsyncGenerator[Client]:
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:  # type: ignore[arg-type]
            yield client
