"""The server around the application."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn


class Server(uvicorn.Server):
    """Lets listeners go as soon as it is told to stop: it would wait for them otherwise, and they for the next word."""

    def __init__(self, config: uvicorn.Config, before_closing: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_closing = before_closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_closing()
        await super().shutdown(sockets)
