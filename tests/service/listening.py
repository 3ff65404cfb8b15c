"""Clients of server-sent events that come back where they left off, as browsers do."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(frozen=True)
class Event:
    name: str
    data: dict[str, Any]
    id: str | None


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    found: dict[str, str] = {}
    async for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            found[name] = value
        elif "data" in found:
            yield Event(found["event"], json.loads(found["data"]), found.get("id"))
            found = {}


@dataclass
class Client:
    """Listens until it has heard `last`, over as many connections as that takes."""

    url: Callable[[], str]  # where the service is just now
    talk: str
    last: str
    heard: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    connections: int = 0
    position: str | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, http: httpx.AsyncClient) -> None:
        while not (self.heard and self.heard[-1][1] == self.last):
            try:
                await self._connect(http)
            except httpx.TransportError:
                await asyncio.sleep(0.05)  # as browsers wait between two attempts

    async def _connect(self, http: httpx.AsyncClient) -> None:
        headers = {} if self.position is None else {"Last-Event-ID": self.position}
        async with http.stream("GET", f"{self.url()}/conversations/{self.talk}/stream", headers=headers) as answer:
            if answer.status_code != 200:
                await answer.aread()
                raise httpx.ReadError(f"{answer.status_code} {answer.text}")
            self.connections += 1
            async for event in events_of(answer.aiter_lines()):
                self._note(event)
                if event.name == "message" and event.data["content"] == self.last:
                    return

    def _note(self, event: Event) -> None:
        self.position = event.id or self.position
        if event.name == "message":
            self.heard.append((event.data["seq"], event.data["content"]))
        self.ready.set()
