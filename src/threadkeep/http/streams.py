"""Conversations as they grow, as server-sent events for their listeners.

An event's id is the message's `seq` in the archive: a listener that reconnects, to this process or to another, names
the last one it saw and gets what followed. Pieces of an answer in progress have no id and are not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from threadkeep.errors import StoreError
from threadkeep.http.encoding import encoded
from threadkeep.memory import Memory
from threadkeep.model import Message
from threadkeep.scope import Scope

_PAGE = 100
_MOST_WAITING = 1_000  # a listener that falls further behind is cut off; it comes back and catches up
_POLL_SECONDS = 2.0  # how soon what other processes append is noticed
_QUIET_SECONDS = 15.0
_ALIVE = b": still here\n\n"
Allowed = Callable[[], Awaitable[bool]]


@dataclass(eq=False)
class _Listener:
    waiting: asyncio.Queue[Message | bytes | None] = field(
        default_factory=lambda: asyncio.Queue[Message | bytes | None](_MOST_WAITING)
    )
    cut_off: bool = False

    def give(self, item: Message | bytes | None) -> None:
        try:
            self.waiting.put_nowait(item)
        except asyncio.QueueFull:
            self.cut_off = True


@dataclass(eq=False)
class _Channel:
    """One conversation: a single reader for all who listen to it."""

    scope: Scope
    listeners: set[_Listener] = field(default_factory=set[_Listener])
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.Task[None] | None = None
    last: int = 0
    generation: int | None = None

    def is_erased_at(self, generation: int | None) -> bool:
        """Erasing raises it; a store that does not know it says None, or what it knew before."""
        known, self.generation = self.generation, max(self.generation or 0, generation or 0)
        return known is not None and self.generation > known

    def end(self) -> None:
        """Report the erasure. `seq` begins anew: a listener that reconnects has seen none of the messages to come."""
        self.give(framed("erased", {}, 0))
        self.give(None)

    def give(self, item: Message | bytes | None) -> None:
        for listener in self.listeners:
            listener.give(item)


class Streams:
    def __init__(
        self, memory: Memory, poll_seconds: float = _POLL_SECONDS, quiet_seconds: float = _QUIET_SECONDS
    ) -> None:
        self._memory = memory
        self._poll = poll_seconds
        self._quiet = quiet_seconds
        self._channels: dict[bytes, _Channel] = {}
        self._closed = False

    def grown(self, scope: Scope) -> None:
        """Something was appended here."""
        if channel := self._channels.get(scope.digest()):
            channel.grown.set()

    def send(self, scope: Scope, event: str, data: dict[str, Any]) -> None:
        """Send to the current listeners only; the event is not repeated to later ones."""
        if channel := self._channels.get(scope.digest()):
            channel.give(framed(event, data))

    def listened_to(self, scope: Scope) -> bool:
        return scope.digest() in self._channels

    def end(self, scope: Scope) -> None:
        """Notify listeners that the conversation was erased, and end their streams."""
        if channel := self._channels.get(scope.digest()):
            channel.end()

    def close(self) -> None:
        """End all streams, so that listeners reconnect to the next process."""
        self._closed = True
        for channel in self._channels.values():
            channel.give(None)

    async def position(self, scope: Scope, last: int | None) -> int:
        """Behind which event a listener begins: the last it saw, or the newest there is.

        An id that this conversation never had would make it, and all who share its reader, wait for one still later.
        """
        found = await self._memory.history(scope, 1)
        newest = found.messages[-1].seq if found.messages else 0
        return newest if last is None else min(last, newest)

    async def frames(self, scope: Scope, after: int, allowed: Allowed | None = None) -> AsyncIterator[bytes]:
        """Everything after that `seq`, in order, each message once, then what comes, as long as that is `allowed`."""
        listener = _Listener()
        channel = self._listen(scope, listener, after)
        try:
            yield b"retry: 1000\n" + framed("ready", {"after": after}, after)
            for message in await messages_after(self._memory, scope, after):
                yield _of_message(message)
                after = message.seq
            while not (self._closed or listener.cut_off):
                item = await self._next(listener)
                if item is None or (allowed is not None and not await allowed()):
                    return
                if isinstance(item, bytes):
                    yield item
                elif item.seq > after:
                    yield _of_message(item)
                    after = item.seq
        finally:
            self._leave(channel, listener)

    async def _next(self, listener: _Listener) -> Message | bytes | None:
        try:
            async with asyncio.timeout(self._quiet):
                return await listener.waiting.get()
        except TimeoutError:
            return _ALIVE

    def _listen(self, scope: Scope, listener: _Listener, after: int) -> _Channel:
        channel = self._channels.setdefault(scope.digest(), _Channel(scope))
        channel.listeners.add(listener)
        if channel.reader is None:
            # Messages up to here are the listener's own to read; a later one may be read twice and is sent once.
            channel.last = after
            channel.reader = asyncio.create_task(self._read(channel), name="threadkeep-stream")
        return channel

    def _leave(self, channel: _Channel, listener: _Listener) -> None:
        channel.listeners.discard(listener)
        if not channel.listeners and channel.reader is not None:
            channel.reader.cancel()
            self._forget(channel)

    def _forget(self, channel: _Channel) -> None:
        if self._channels.get(channel.scope.digest()) is channel:
            del self._channels[channel.scope.digest()]

    async def _read(self, channel: _Channel) -> None:
        while True:
            channel.grown.clear()
            with suppress(StoreError):  # listeners wait until it is back
                generation, messages = await _since(self._memory, channel.scope, channel.last)
                if channel.is_erased_at(generation):  # by another surface or another process
                    self._forget(channel)
                    channel.end()
                    return
                for message in messages:
                    channel.last = message.seq
                    channel.give(message)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await channel.grown.wait()


async def messages_after(memory: Memory, scope: Scope, seq: int) -> list[Message]:
    """In order."""
    return (await _since(memory, scope, seq))[1]


async def _since(memory: Memory, scope: Scope, seq: int) -> tuple[int | None, list[Message]]:
    """The generation too. Pages are read from the newest back, until one reaches what is known."""
    found: list[Message] = []
    before: int | None = None
    while True:
        page = await memory.history(scope, _PAGE, before)
        found[:0] = [message for message in page.messages if message.seq > seq]
        if page.before is None or not page.messages or page.messages[0].seq <= seq:
            return page.scope.generation, found
        before = page.before


def framed(event: str, data: dict[str, Any], id_: int | None = None) -> bytes:
    """Encode an event. JSON escapes newlines, so its data is one field."""
    name = b"" if id_ is None else f"id: {id_}\n".encode()
    return name + f"event: {event}\ndata: ".encode() + encoded(data) + b"\n\n"


def _of_message(message: Message) -> bytes:
    return framed("message", message.as_dict(), message.seq)
