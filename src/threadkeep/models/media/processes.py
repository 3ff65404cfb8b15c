"""Processes that open what strangers send: a few at a time, in bounded memory, without this process's environment.

Pictures and recordings are decoded by libraries in C. They run in processes of their own, which see none of the
settings (database URLs, keys) and may use no more memory than they are given.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from threadkeep.errors import (
    InvalidEvent,
    InvalidInput,
    InvalidSetting,
    MissingExtra,
    ModelError,
    RateLimited,
    TooLarge,
)
from threadkeep.ports.models import Medium

# What a program needs to be found and to read its own files; every other variable may be a secret.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "TMPDIR", "LANG", "LC_ALL", "PYTHONPATH", "SYSTEMROOT")
_ERRORS: dict[str, type[InvalidInput]] = {kind.code: kind for kind in (InvalidEvent, TooLarge, InvalidSetting)}
_WAITING = 32
_COME_BACK_SECONDS = 10


def content(medium: Medium) -> bytes:
    medium.file.seek(0)
    return medium.file.read()


def environment() -> dict[str, str]:
    """Of a process that opens what strangers send."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"OMP_THREAD_LIMIT": "1"}


class Turns:
    """Lets `at_once` work at the same time, and a few wait. Raises `RateLimited` for those beyond."""

    def __init__(self, at_once: int = 1) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        if self._waiting >= _WAITING:
            raise RateLimited("too many pictures or recordings are waiting to be read", _COME_BACK_SECONDS)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()


def started(command: Sequence[str], memory_bytes: int) -> subprocess.Popen[bytes]:
    """`subprocess` and not asyncio's: uvloop raises where a program ends before its input is written."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment())
    if sys.platform == "linux":
        import resource

        with suppress(ProcessLookupError):  # it has ended already
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    return process


async def finished(command: Sequence[str], given: bytes, seconds: float, memory_bytes: int) -> tuple[int, bytes]:
    """Run a program to its end. Return its exit code and output. Raise `TimeoutError`; it is killed then."""
    process = started(command, memory_bytes)
    try:
        out = await asyncio.to_thread(_output, process, given, seconds)
    except asyncio.CancelledError:
        process.kill()  # the thread reads the end of its output, and closes it
        raise
    return process.returncode, out


def _output(process: subprocess.Popen[bytes], given: bytes, seconds: float) -> bytes:
    try:
        return process.communicate(given, seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise TimeoutError from None


class Worker:
    """Runs a Python module in a process of its own, one request at a time. It starts with the first one and stays.

    It reads a line of JSON and as many bytes as that says, and answers in a line of JSON: see `answering`.
    """

    def __init__(self, module: str, seconds: float, memory_bytes: int) -> None:
        self._command = (sys.executable, "-P", "-m", module)
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._turns = Turns()
        self._process: subprocess.Popen[bytes] | None = None

    async def ask(self, question: dict[str, Any], data: bytes) -> dict[str, Any]:
        """Raise what the module raised, and `ModelError` where it ended or took too long."""
        async with self._turns.turn():
            if self._process is not None and self._process.poll() is not None:
                await self.close()
            if self._process is None:
                self._process = started(self._command, self._memory_bytes)
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await asyncio.to_thread(_exchanged, self._process, question, data)
            except BaseException as error:  # half an exchange: the next question needs a new process
                await self.close()
                if isinstance(error, TimeoutError):
                    raise ModelError("the recording took too long to read") from None
                raise
        if error := answer.get("error"):
            kind = MissingExtra if error["code"] == MissingExtra.code else _ERRORS[error["code"]]
            raise kind(*error["arguments"])
        return answer

    async def close(self) -> None:
        """Kill the process. A question under way raises `ModelError`."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await asyncio.to_thread(_closed, process)


def _closed(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written is lost with it
                pipe.close()


def _exchanged(process: subprocess.Popen[bytes], question: dict[str, Any], data: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(question | {"bytes": len(data)}).encode() + b"\n" + data)
        process.stdin.flush()
        return json.loads(process.stdout.readline())
    except (OSError, ValueError):
        raise ModelError("the process that reads recordings ended; the recording may need too much memory") from None
