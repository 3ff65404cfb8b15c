"""A small loopback stand-in for embedding servers: Ollama's `/api/embed` and OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.ports import LOOPBACK


@dataclass
class EmbeddingStub:
    """Answers with vectors of `size` that depend on each text alone. `statuses` are given out first, one a request."""

    size: int = 1024
    models: tuple[str, ...] = ("bge-m3",)
    statuses: list[int] = field(default_factory=list[int])
    body: bytes | None = None  # answered as it is, in place of vectors
    refused: str | None = None  # a text that holds this is answered with HTTP 400
    away: bool = False  # hangs up on whoever asks
    asked: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list[Any])

    def __enter__(self) -> EmbeddingStub:
        self._listen(0)
        return self

    def kill(self) -> None:
        """Nobody listens any more; whoever is connected is hung up on."""
        self.away = True
        self.__exit__()

    def restart(self) -> None:
        """At the same address."""
        self.away = False
        self._listen(self.port)

    def _listen(self, port: int) -> None:
        self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def vector(self, text: str) -> list[float]:
        return [float((len(text) * 31 + index * 7 + ord(text[0])) % 13) - 6 for index in range(self.size)]

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if self.statuses:
            return self.statuses.pop(0), b"{}"
        if body["model"] not in self.models:
            return 404, json.dumps({"error": f'model "{body["model"]}" not found, try pulling it first'}).encode()
        if self.body is not None:
            return 200, self.body
        if self.refused is not None and any(self.refused in text for text in body["input"]):
            return 400, b"{}"
        rows = [self.vector(text) for text in body["input"]]
        if path == "/api/embed":
            return 200, json.dumps({"model": body["model"], "embeddings": rows}).encode()
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
            return 200, json.dumps({"object": "list", "data": data[::-1]}).encode()
        return 404, b"{}"


def _handler(stub: EmbeddingStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            if stub.away:
                self.close_connection = True
                return
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.asked.append((self.path, body, self.headers.get("Authorization")))
            status, answer = stub.answer(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
