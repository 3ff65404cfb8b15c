"""A run of `bench service` that a service ends says which one it was."""

from __future__ import annotations

import asyncio
import os

import pytest

from bench.service import CHAT, named
from bench.service_load import Requests, loaded, post


async def _refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_an_answer_that_ends_the_run_is_told_with_the_service_that_gave_it() -> None:
    server = await asyncio.start_server(_refusing, "127.0.0.1", 0)
    requests = Requests(lambda client, sent: post(CHAT, {}), lambda client: [])
    async with server:
        with pytest.raises(RuntimeError, match="500") as ended, named("openai", CHAT, "1 clients"):
            await loaded((server.sockets[0].getsockname()[1], os.getpid()), requests, 1, 5.0)
    assert ended.value.__notes__ == ["by openai, at /agent/chat, with 1 clients"]
