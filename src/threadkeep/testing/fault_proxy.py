"""A loopback TCP proxy that misbehaves on request, to see what a client does when the connection to its server fails.

    async with FaultProxy("127.0.0.1", 6379) as proxy:
        client = connect(proxy.url_for("redis://127.0.0.1:6379/0"))
        proxy.delay(0.5)     # the server acts at once, its answers come late
        proxy.reset()        # open and new connections get a TCP reset
        proxy.half_open()    # bytes vanish both ways, nothing is closed: as after a power cut at the other end
        proxy.blackhole()    # nothing moves, nothing is lost: it all flows on after restore()
        proxy.restore()

One mode holds at a time, for open and new connections alike. Leaving `half_open` resets the connections that lost
bytes in it, because their streams have a hole. A connection is accepted by the kernel in every mode, so a client's
*connect* never times out here; its first read does.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 20
# SO_LINGER with a timeout of 0: on close the kernel drops what is unsent and sends RST instead of FIN.
LINGER_NOT = struct.pack("ii", 1, 0)


class _Mode(Enum):
    PASS = auto()
    DELAY = auto()
    RESET = auto()
    HALF_OPEN = auto()
    BLACKHOLE = auto()


@dataclass(slots=True)
class Traffic:
    """What went through; bytes count when they are handed on, `dropped` when they were swallowed."""

    connections: int = 0
    to_server: int = 0
    to_client: int = 0
    dropped: int = 0


@dataclass(eq=False, slots=True)
class _Link:
    """One client's connection and, once dialled, its counterpart to the server."""

    task: "asyncio.Task[None]"
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])
    has_hole: bool = False

    def reset(self) -> None:
        for writer in self.writers:
            with suppress(OSError):  # already closed
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            writer.transport.abort()

    async def close(self) -> None:
        for writer in self.writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class FaultProxy:
    """Listens on a free loopback port and forwards to `host:port`, which must be loopback too (`ValueError`)."""

    def __init__(self, host: str, port: int) -> None:
        if not _is_loopback(host):
            raise ValueError(f"the fault proxy forwards to loopback only, not to {host}")
        self.host, self.port = LOOPBACK, 0
        self.traffic = Traffic()
        self._target = (host, port)
        self._mode, self._delay = _Mode.PASS, 0.0
        self._switched = asyncio.Event()
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=CHUNK)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        tasks = [link.task for link in self._links]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def open_connections(self) -> int:
        return len(self._links)

    def url_for(self, url: str) -> str:
        """The same URL, through the proxy."""
        parts = urlsplit(url)
        account, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{account}{at}{self.host}:{self.port}").geturl()

    def restore(self) -> None:
        self._switch(_Mode.PASS)

    def delay(self, seconds: float) -> None:
        self._delay = seconds
        self._switch(_Mode.DELAY)

    def reset(self) -> None:
        self._switch(_Mode.RESET)
        for link in self._links:
            link.reset()

    def half_open(self) -> None:
        self._switch(_Mode.HALF_OPEN)

    def blackhole(self) -> None:
        self._switch(_Mode.BLACKHOLE)

    def _switch(self, mode: _Mode) -> None:
        if mode is not _Mode.HALF_OPEN:
            for link in self._links:
                if link.has_hole:
                    link.reset()
        self._mode = mode
        self._switched.set()
        self._switched = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        link = _Link(task, [writer])
        self._links.add(link)
        self.traffic.connections += 1
        with suppress(asyncio.CancelledError):  # leaving the proxy; asyncio's server would log it as an error
            await self._serve_link(link, reader, writer)

    async def _serve_link(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._connect_and_pump(link, reader, writer)
        except* (
            OSError
        ):  # the server is down, or one side was reset: the other is reset once the mode lets packets through
            await self._while_in(_Mode.BLACKHOLE, _Mode.HALF_OPEN)
            link.reset()
        finally:
            await link.close()
            self._links.discard(link)

    async def _connect_and_pump(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._while_in(_Mode.BLACKHOLE)
        if self._mode is _Mode.RESET:
            raise ConnectionResetError
        if self._mode is _Mode.HALF_OPEN:
            await self._swallow_all(link, reader)
            return
        server_reader, server_writer = await asyncio.open_connection(*self._target, limit=CHUNK)
        link.writers.append(server_writer)
        async with asyncio.TaskGroup() as both_ways:
            both_ways.create_task(self._to_server(link, reader, server_writer))
            both_ways.create_task(self._to_client(link, server_reader, writer))

    async def _swallow_all(self, link: _Link, reader: asyncio.StreamReader) -> None:
        """A connection born half open: it never had a server, so it only ends by the reset on leaving the mode."""
        link.has_hole = True
        while chunk := await reader.read(CHUNK):
            self.traffic.dropped += len(chunk)
        await self._while_in(_Mode.HALF_OPEN)

    async def _to_server(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            await self._while_in(_Mode.BLACKHOLE)
            if await self._hand_on(link, chunk, writer):
                self.traffic.to_server += len(chunk)
        await self._hand_on_the_end(writer)

    async def _to_client(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            await self._hold_the_answer()
            await self._while_in(_Mode.BLACKHOLE)
            if await self._hand_on(link, chunk, writer):
                self.traffic.to_client += len(chunk)
        await self._hand_on_the_end(writer)

    async def _hand_on(self, link: _Link, chunk: bytes, writer: asyncio.StreamWriter) -> bool:
        """Forward the chunk or drop it; True where it was forwarded."""
        if self._mode is _Mode.HALF_OPEN:
            link.has_hole = True
            self.traffic.dropped += len(chunk)
            return False
        if writer.is_closing():
            raise ConnectionResetError
        writer.write(chunk)
        await writer.drain()
        return True

    async def _hand_on_the_end(self, writer: asyncio.StreamWriter) -> None:
        await self._while_in(_Mode.BLACKHOLE, _Mode.HALF_OPEN)
        if not writer.is_closing():
            writer.write_eof()

    async def _hold_the_answer(self) -> None:
        if self._mode is _Mode.DELAY:
            with suppress(TimeoutError):  # a switch of mode ends the delay early
                await asyncio.wait_for(self._switched.wait(), self._delay)

    async def _while_in(self, *modes: _Mode) -> None:
        while self._mode in modes:
            await self._switched.wait()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
