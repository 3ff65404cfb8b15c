"""Connections to one server. redis-py makes them (address, TLS, login, database); what is then said goes straight.

Its pool, its streams and its parser cost more than the round trip itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from redis import exceptions as theirs

from threadkeep.sessions.redis.resp import Answers

Argument = str | bytes | int | float


class Wire:
    """Whoever calls bounds how many calls are under way, and with them the connections."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: list[_Line] = []
        self._closed = False

    async def execute_command(self, *words: Argument, until: float) -> Any:
        """Raises what the server answered, `ConnectionError`, and `TimeoutError` past `until`, by the loop's clock."""
        return await self._answer(packed(words), until)

    async def evaluate(self, sha: str, keys: tuple[str, ...], arguments: Sequence[Argument], until: float) -> Any:
        """A script that the server knows by its digest. What comes before the arguments is written once per talk."""
        count = 3 + len(keys) + len(arguments)
        return await self._answer(b"*%d\r\n%b%b" % (count, _script_and_keys(sha, keys), _written(arguments)), until)

    async def _answer(self, command: bytes, until: float) -> Any:
        (answer,) = await self.answers(command, 1, until)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answers(self, commands: bytes, count: int, until: float) -> list[Any]:
        """To commands that are sent in one go; an error is an answer too. Raises `ConnectionError`, `TimeoutError`."""
        line = self._free_line() or await self._new_line(until)
        try:
            found = await line.ask(commands, count, until)
        except TimeoutError:
            line.close()
            raise
        except (theirs.RedisError, OSError):
            line.close()
            self._drop_all()  # a server that ended one has ended them all
            raise
        except BaseException:  # given up in the middle: its answer must not meet the next question
            line.close()
            raise
        if self._closed:
            line.close()
        else:
            self._free.append(line)
        return found

    async def aclose(self) -> None:
        self._closed = True
        self._drop_all()

    def _free_line(self) -> _Line | None:
        while self._free:
            line = self._free.pop()
            if not line.ended:
                return line
        return None

    async def _new_line(self, until: float) -> _Line:
        async with asyncio.timeout_at(until):
            return await _opened(self._make())

    def _drop_all(self) -> None:
        free, self._free = self._free, []
        for line in free:
            line.close()


async def _opened(connection: Any) -> _Line:
    try:
        await connection.connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    line = _Line(connection._writer)
    connection._reader = connection._writer = None  # ours from here on
    return line


class _Line(asyncio.Protocol):
    """One connection, one question at a time."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer  # kept: it closes the transport when it goes
        self._transport = writer.transport
        self._loop = asyncio.get_running_loop()
        self._incoming = Answers()
        self._answers: list[Any] = []
        self._count = 0
        self._waiting: asyncio.Future[list[Any]] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.ended = self._transport.is_closing()
        self._transport.set_protocol(self)

    def ask(self, commands: bytes, count: int, until: float) -> asyncio.Future[list[Any]]:
        self._answers, self._count, self._until = [], count, until
        self._waiting = self._loop.create_future()
        if self._timer is None or self._timer.when() > until:
            self._look_at(until)
        self._transport.write(commands)
        return self._waiting

    def _look_at(self, when: float) -> None:
        """One timer for a line, not one for a question: most are answered long before, and the next moves `until`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiting is None or self._waiting.done():
            return
        if self._loop.time() < self._until:
            self._look_at(self._until)
        else:
            self._end(TimeoutError("no answer in time"))

    def data_received(self, data: bytes) -> None:
        try:
            self._answers += self._incoming.feed(data)
        except ValueError as error:  # no Redis at the other end
            self._end(theirs.ConnectionError(f"an answer that is none ({type(error).__name__})"))
            self.close()
            return
        if self._waiting is None or self._waiting.done() or len(self._answers) > self._count:
            self.close()  # nobody asked for this
        elif len(self._answers) == self._count:
            self._waiting.set_result(self._answers)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(theirs.ConnectionError("the connection ended"))

    def close(self) -> None:
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._transport.abort()

    def _end(self, error: Exception) -> None:
        self.ended = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def packed(words: Sequence[Argument]) -> bytes:
    """One command, as the protocol writes it."""
    return b"*%d\r\n%b" % (len(words), _written(words))


@lru_cache(maxsize=4_096)
def _script_and_keys(sha: str, keys: tuple[str, ...]) -> bytes:
    return _written(("EVALSHA", sha, len(keys), *keys))


def _written(words: Sequence[Argument]) -> bytes:
    parts: list[bytes] = []
    for word in words:
        data = word if type(word) is bytes else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)
