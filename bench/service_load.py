"""Clients that ask and wait for the answer, each on a line of its own: as fast as they are answered, or at a rate."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Requests(NamedTuple):
    """By the client's number: its next request, given how many it has sent; and what it sends before it is measured."""

    next: Callable[[int, int], bytes]
    first: Callable[[int], list[bytes]]


_IDLE_LINES = 64  # enough that a request that arrives finds one free
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


def processor_ms(pid: int) -> float:
    """Of all its threads so far."""
    told = [Path(one, "schedstat").read_text() for one in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(line.split()[0]) for line in told) / 1e6


def post(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Measured(NamedTuple):
    answers: list[float]  # milliseconds
    per_second: float
    cpu_ms: float  # of the service's process, an answer


async def loaded(
    service: tuple[int, int], requests: Requests, clients: int, seconds: float, pause: float = 0.0
) -> Measured:
    """A service by its port and process id. Any answer but a 2xx ends the run.

    After an answer a client pauses for `pause` seconds, half as long or half as long again: else all would ask at once.
    """
    port, pid = service
    lines = [await _line(port, requests, number) for number in range(clients)]
    before = processor_ms(pid)
    began = time.perf_counter()
    until = began + seconds
    try:
        spent = await asyncio.gather(*(_client(line, requests, n, until, pause) for n, line in enumerate(lines)))
        answers = [one for its in spent for one in its]
        return _measured(answers, began, pid, before)
    finally:
        await _closed(lines)


def _measured(answers: list[float], began: float, pid: int, before: float) -> Measured:
    took, spent = time.perf_counter() - began, processor_ms(pid) - before
    return Measured(answers, len(answers) / took, spent / len(answers))


async def arriving(service: tuple[int, int], requests: Requests, a_second: int, seconds: float) -> Measured:
    """The same for requests that come at their time, whether or not those before them are answered.

    Waiting counts from the moment at which a request was due.
    """
    port, pid = service
    lines = [await _line(port, requests, number) for number in range(_IDLE_LINES)]
    before = processor_ms(pid)
    free, sent = list(range(_IDLE_LINES)), [0] * _IDLE_LINES
    spent: list[float] = []
    room = asyncio.Semaphore(_IDLE_LINES)

    async def one(due: float) -> None:
        number = free.pop()
        reader, writer = lines[number]
        writer.write(requests.next(number, sent[number]))
        sent[number] += 1
        await _answered(reader)
        spent.append((time.perf_counter() - due) * 1_000)
        free.append(number)
        room.release()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for place in range(int(a_second * seconds)):
            due = began + place / a_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await room.acquire()
            group.create_task(one(due))
    measured = _measured(spent, began, pid, before)
    await _closed(lines)
    return measured


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _line(port: int, requests: Requests, number: int) -> Line:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for before in requests.first(number):
        writer.write(before)
        await _answered(reader)
    return reader, writer


async def _closed(lines: list[Line]) -> None:
    for _, writer in lines:
        writer.close()
        await writer.wait_closed()


async def _client(line: Line, requests: Requests, number: int, until: float, pause: float) -> list[float]:
    reader, writer = line
    spent: list[float] = []
    chance = random.Random(number)
    while time.perf_counter() < until:
        request = requests.next(number, len(spent))
        start = time.perf_counter()
        writer.write(request)
        await _answered(reader)
        spent.append((time.perf_counter() - start) * 1_000)
        if pause:
            await asyncio.sleep(pause * chance.uniform(0.5, 1.5))
    return spent


async def _answered(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"the service answered {head.splitlines()[0].decode()}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))
