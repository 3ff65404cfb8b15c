"""A port that takes connections and closes them at once, as a proxy does whose database is away."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
import uvloop

from threadkeep import open_memory
from threadkeep.errors import StoreUnavailable

_RESET = struct.pack("ii", 1, 0)  # no lingering: the other side is told at once


@pytest.fixture
def closing_port() -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))

    def close_each() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()

    closing = threading.Thread(target=close_each)
    closing.start()
    yield listening.getsockname()[1]
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    closing.join()


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_it_is_away_like_any_other(scheme: str, run, closing_port: int) -> None:
    async def opened() -> None:
        for _ in range(15):  # with uvloop it depends on who is quicker how the driver takes it
            with pytest.raises(StoreUnavailable):
                async with open_memory(f"{scheme}://u:p@127.0.0.1:{closing_port}/x", worker=False):
                    pass

    run(opened())


async def test_a_driver_that_is_told_in_another_way_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """What uvloop says when the line was closed before the driver had looked at its socket."""

    async def connect(**_: object) -> None:
        raise RuntimeError("Transport does not expose socket instance")

    monkeypatch.setattr("asyncmy.connect", connect)
    with pytest.raises(StoreUnavailable):
        async with open_memory("mysql://u:p@127.0.0.1:1/x", worker=False):
            pass
