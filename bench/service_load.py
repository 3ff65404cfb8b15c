"""Clients that ask and wait for the answer, each on a line of its own, as fast as they are answered."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Requests = Callable[[int, int], bytes]  # the client's number and how many it has sent, to the next request

_UP_SECONDS = 60.0


@contextmanager
def running(name: str, *places: str) -> Iterator[tuple[int, int]]:
    """The service of this name in a process of its own: its port and its process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bench.service_apps", name, str(port), *places]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_up(process, port)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_up(process: subprocess.Popen[bytes], port: int) -> None:
    give_up = time.monotonic() + _UP_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"a service of the bench did not start (exit code {process.poll()})")


def resident_mb(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1_024


def post(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


async def loaded(port: int, requests: Requests, clients: int, seconds: float) -> tuple[list[float], float]:
    """Milliseconds of every answer, and answers a second. Any answer but a 2xx ends the run."""
    until = time.perf_counter() + seconds
    began = time.perf_counter()
    spent = await asyncio.gather(*(_client(port, requests, number, until) for number in range(clients)))
    answers = [one for its in spent for one in its]
    return answers, len(answers) / (time.perf_counter() - began)


async def _client(port: int, requests: Requests, number: int, until: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    spent: list[float] = []
    try:
        while time.perf_counter() < until:
            request = requests(number, len(spent))
            start = time.perf_counter()
            writer.write(request)
            await _answered(reader)
            spent.append((time.perf_counter() - start) * 1_000)
    finally:
        writer.close()
        await writer.wait_closed()
    return spent


async def _answered(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"the service answered {head.splitlines()[0].decode()}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))
