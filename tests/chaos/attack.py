"""Attacks on a running service from this machine, bounded in count and time, and what other clients notice of them.

The attacker needs no credential. While an attack runs, `Bystander` asks `/healthz`, each time on a new connection, and
reads how much memory the service and the processes it started have in use.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

import psutil
from PIL import Image, ImageDraw, ImageFont

from tests.servers.locate import LATIN_FONT
from tests.service.running import RunningService

_PIECE = b"x" * 65_536
_ASKED_EVERY = 0.02


@dataclass
class Bystander:
    """Another client's view: how long `/healthz` took, in seconds, and the most memory that was in use, in MB.

    It runs in a thread of its own, so that it does not wait for the attack's side of the connections.
    """

    service: RunningService
    waits: list[float] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    peak_mb: float = 0

    def watch(self, ended: threading.Event) -> None:
        """At least 100 requests, and until the attack has ended. A connection closed without an answer counts as 0."""
        while len(self.waits) < 100 or not ended.is_set():
            began = time.perf_counter()
            self.answers[self._asked()] += 1
            self.waits.append(time.perf_counter() - began)
            self.peak_mb = max(self.peak_mb, resident_mb(self.service))
            ended.wait(_ASKED_EVERY)

    def _asked(self) -> int:
        with socket.create_connection(_address(self.service), 60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return int((connection.recv(4_096).split() or [b"", b"0"])[1])

    @property
    def p99(self) -> float:
        return sorted(self.waits)[int(len(self.waits) * 0.99)]

    def __str__(self) -> str:
        asked = f"{len(self.waits)} requests, p99 {self.p99 * 1000:.0f} ms, max {max(self.waits) * 1000:.0f} ms"
        return f"{asked}, {self.peak_mb:.0f} MB at most"


def resident_mb(service: RunningService) -> float:
    """Of the process and all it started."""
    root = psutil.Process(service.pid)
    total = 0
    for process in (root, *root.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:  # it ended just now
            continue
    return total / 1_048_576


async def connected(service: RunningService) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*_address(service))


def _address(service: RunningService) -> tuple[str, int]:
    host, _, port = service.url.removeprefix("http://").partition(":")
    return host, int(port)


async def _status(service: RunningService, request: bytes) -> int:
    reader, writer = await connected(service)
    writer.write(request)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


async def one_large_header(service: RunningService, megabytes: int) -> int:
    """One header of so many megabytes, or as much of it as the service takes. Returns the status of the answer."""
    return await _poured(service, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: ", megabytes)


async def one_long_url(service: RunningService, megabytes: int) -> int:
    return await _poured(service, b"GET /healthz?x=", megabytes)


async def _poured(service: RunningService, start: bytes, megabytes: int) -> int:
    reader, writer = await connected(service)
    answer = asyncio.create_task(reader.readline())
    writer.write(start)
    try:
        for _ in range(megabytes * 16):
            writer.write(_PIECE)
            await writer.drain()
            if answer.done():
                break
        else:
            writer.write(b"\r\n\r\n" if b"Host" in start else b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    except ConnectionError:
        pass  # it was closed; the answer may have come before
    line = await answer
    writer.close()
    return int(line.split()[1])


async def slow_sockets(service: RunningService, count: int, seconds: float) -> int:
    """Connections that send a header byte by byte. Returns how many are still open after so many seconds."""

    async def dribble() -> bool:
        reader, writer = await connected(service)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        ends = time.monotonic() + seconds
        try:
            while time.monotonic() < ends and not reader.at_eof():
                writer.write(b"x")
                await writer.drain()
                try:
                    await asyncio.wait_for(reader.read(4096), 0.5)
                except TimeoutError:
                    continue
            return not reader.at_eof()
        except ConnectionError:
            return False
        finally:
            writer.close()

    return sum(await asyncio.gather(*(dribble() for _ in range(count))))


def picture(pixels: int = 15_900_000) -> bytes:
    """As many pixels as a picture may have, and one line of text: a small file that unfolds to 64 MB."""
    side = int(pixels**0.5)
    drawn = Image.new("RGBA", (side, side), "white")
    ImageDraw.Draw(drawn).text(
        (40, 40), "Breakfast begins at seven", font=ImageFont.truetype(LATIN_FONT, 64), fill="black"
    )
    file = io.BytesIO()
    drawn.save(file, "PNG", optimize=True)
    return file.getvalue()


async def upload(service: RunningService, data: bytes, seconds: float = 240) -> int:
    image = {"data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    body = json.dumps({"sessionId": str(uuid.uuid4()), "image": image}).encode()
    head = (
        f"POST /agent/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    async with asyncio.timeout(seconds):
        return await _status(service, head.encode() + b"\r\n\r\n" + body)


async def uploads(service: RunningService, data: bytes, count: int) -> Counter[int]:
    """So many at once. Returns how often each status was answered."""
    return Counter(await asyncio.gather(*(upload(service, data) for _ in range(count))))
