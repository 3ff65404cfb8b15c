"""The hotel's own backend, which the concierge's tools ask."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def hotel() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A running hotel: its address and its book."""
    sys.path.insert(0, str(EXAMPLES / "hotel_concierge"))
    try:
        from hotel_backend import hotel as opened  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.pop(0)
    app = opened()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.book
        server.should_exit = True
        thread.join()
