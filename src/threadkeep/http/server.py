"""The server around the application."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable

import uvicorn

from threadkeep.http.request_limits import LimitedConnections, RequestLimits


class Server(uvicorn.Server):
    """Calls `before_closing` when it begins to shut down: uvicorn would wait for open streams, and they for messages.

    Freezes what is loaded at startup, so that garbage collection skips it while requests are served. `limits` bounds
    what a client may cost before it is authenticated; without it uvicorn's own limits hold alone.
    """

    def __init__(
        self, config: uvicorn.Config, before_closing: Callable[[], None], limits: RequestLimits | None = None
    ) -> None:
        super().__init__(config)
        self._before_closing = before_closing
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._limits is not None:
            LimitedConnections(self._limits).wrap(self.config)
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_closing()
        await super().shutdown(sockets)
