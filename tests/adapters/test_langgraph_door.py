"""The saver's way to its store: who else in the loop gets on while a put works."""

from __future__ import annotations

import asyncio
import socket

import pytest

from threadkeep.adapters.langgraph.store_router import StoreRouter


class Nowhere:
    async def close(self) -> None:
        """There is nothing to close."""


async def open_nowhere() -> Nowhere:
    return Nowhere()


@pytest.mark.parametrize(("on_a_server", "heard"), [(True, b"answer"), (False, None)])
async def test_an_answer_that_is_there_is_heard_before_long_work(on_a_server: bool, heard: bytes | None) -> None:
    router = StoreRouter(open_nowhere, bound_to_loop=on_a_server)
    ours, servers = socket.socketpair()
    ours.setblocking(False)
    got: list[bytes] = []

    async def wait_for_an_answer() -> None:
        got.append(await asyncio.get_running_loop().sock_recv(ours, 100))

    with ours, servers:
        waiting = asyncio.create_task(wait_for_an_answer())
        await asyncio.sleep(0)
        servers.send(b"answer")
        await router.give_way()
        assert got == ([] if heard is None else [heard])
        await waiting
    await router.close()
