"""The API's event stream as pieces of a page: each message once, and the answer while it is being written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

Render = Callable[[str, dict[str, Any]], str]  # the event's name and data to a piece of HTML


@dataclass(slots=True)
class Event:
    name: str = "message"
    data: list[str] = field(default_factory=list[str])
    id: str | None = None


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """What a stream says, comments left out."""
    event = Event()
    async for line in lines:
        if not line:
            if event.data:
                yield event
            event = Event()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event.name = value
        elif name == "data":
            event.data.append(value)
        elif name == "id":
            event.id = value


async def as_pieces(lines: AsyncIterator[str], render: Render) -> AsyncIterator[bytes]:
    async for event in events_in(lines):
        piece = render(event.name, json.loads("\n".join(event.data)))
        if piece:
            yield framed(event.name, piece, event.id)


def framed(name: str, piece: str, id_: str | None = None) -> bytes:
    seen = "" if id_ is None else f"id: {id_}\n"
    data = "".join(f"data: {line}\n" for line in piece.splitlines())
    return f"{seen}event: {name}\n{data}\n".encode()
