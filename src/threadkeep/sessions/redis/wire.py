"""Connections to one server, kept by us: redis-py makes and speaks them, but its pool costs as much as a round trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redis import exceptions as theirs

Argument = str | bytes | int | float


class Wire:
    """Whoever calls bounds how many calls are under way, and with them the connections."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: list[Any] = []
        self._closed = False

    async def execute_command(self, *words: Argument) -> Any:
        (answer,) = await self.answers(packed(words), 1)
        return answer

    async def answers(self, commands: bytes, count: int) -> list[Any]:
        """To commands that are sent in one go. Raises what the server answered, and `ConnectionError`."""
        connection = self._free.pop() if self._free else self._make()
        try:
            await connection.send_packed_command(commands)
            found = [await connection.read_response() for _ in range(count)]
        except theirs.ResponseError:
            await self._give_back(connection, whole=count == 1)
            raise
        except (theirs.ConnectionError, OSError):
            await connection.disconnect(nowait=True)
            await self._drop_all()  # a server that ended one has ended them all
            raise
        except BaseException:  # given up in the middle: its answer must not meet the next question
            await connection.disconnect(nowait=True)
            raise
        await self._give_back(connection)
        return found

    async def aclose(self) -> None:
        self._closed = True
        await self._drop_all()

    async def _give_back(self, connection: Any, whole: bool = True) -> None:
        if self._closed or not whole:
            await connection.disconnect()
        else:
            self._free.append(connection)

    async def _drop_all(self) -> None:
        free, self._free = self._free, []
        for connection in free:
            await connection.disconnect(nowait=True)


def packed(words: Sequence[Argument]) -> bytes:
    """One command, as the protocol writes it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)
