"""Remote embedders: batches with retries, on Ollama's own interface or the one of OpenAI that many servers speak.

A server that is unreachable, slow or busy raises `EmbedderUnavailable`; one that refuses raises `EmbedderRefused`.
Neither error repeats the request: servers quote it in their answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

import numpy as np

from threadkeep.errors import EmbedderRefused, EmbedderUnavailable, MissingExtra
from threadkeep.models.embedders.shape import checked, encodable
from threadkeep.ports.models import Vectors
from threadkeep.resilience.breaker import PAUSES, retried

if TYPE_CHECKING:
    from httpx import AsyncClient

TIMEOUT_SECONDS = 30.0
_BUSY = {408, 425, 429}
_HINTS = {
    401: "check its key",
    403: "check its key and what it may do",
    404: "check the address and the model's name",
    413: "send shorter texts",
}


class JsonServer:
    """Posts JSON and reads JSON, on one connection pool for as long as the event loop stays the same."""

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = TIMEOUT_SECONDS, proxies: bool = True
    ) -> None:
        self._url = url.rstrip("/")
        self.place = urlsplit(self._url)._replace(query="").geturl().rpartition("@")[2]  # without a password
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._proxies = proxies
        self._client: AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        httpx = _httpx()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._connected().post(f"{self._url}{path}", json=body)
        except (httpx.TransportError, TimeoutError) as error:
            raise EmbedderUnavailable(f"{self.place}: does not answer ({type(error).__name__})") from None
        except (httpx.InvalidURL, UnicodeError):
            raise EmbedderRefused(f"{self.place}: is no address") from None
        status = answer.status_code
        if status >= 500 or status in _BUSY:
            raise EmbedderUnavailable(f"{self.place}: is busy or broken (HTTP {status})")
        if status >= 300:
            hint = _HINTS.get(status, "check its address and model")
            raise EmbedderRefused(f"{self.place}: refused (HTTP {status}); {hint}")
        try:
            return answer.json()
        except ValueError:
            raise EmbedderRefused(f"{self.place}: answered with something that is not JSON") from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def _connected(self) -> AsyncClient:
        """A client belongs to the loop it was first used on; some applications run each call on a new one."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = _httpx().AsyncClient(headers=self._headers, timeout=self._timeout, trust_env=self._proxies)
            self._loop = loop
        return cast("AsyncClient", self._client)


class OllamaSource:
    """`POST /api/embed`."""

    def __init__(self, server: JsonServer, model: str) -> None:
        self._server = server
        self._model = model

    async def vectors(self, texts: list[str]) -> object:
        answer = await self._server.post("/api/embed", {"model": self._model, "input": texts, "truncate": True})
        return _field(answer, "embeddings")

    async def close(self) -> None:
        await self._server.close()


class OpenAiSource:
    """`POST /embeddings` below an address that ends in `/v1`."""

    def __init__(self, server: JsonServer, model: str) -> None:
        self._server = server
        self._model = model

    async def vectors(self, texts: list[str]) -> object:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        rows = _field(await self._server.post("/embeddings", body), "data")
        try:  # the order is by the index field, not by position
            return [_field(row, "embedding") for row in sorted(rows, key=itemgetter("index"))]
        except (KeyError, TypeError):
            return rows

    async def close(self) -> None:
        await self._server.close()


def _field(answer: Any, name: str) -> Any:
    return cast("dict[str, Any]", answer).get(name) if isinstance(answer, dict) else None


def _httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise MissingExtra("embeddings", "an embedding server") from None
    return httpx


AT_ONCE = 64


class Source(Protocol):
    """One request, unchecked. Raises our errors."""

    async def vectors(self, texts: list[str]) -> object: ...

    async def close(self) -> None: ...


class BatchedEmbedder:
    """An `Embedder` on a `Source`. Blank texts are not sent, since servers refuse them; their vectors are zeros."""

    def __init__(
        self,
        name: str,
        source: Source,
        *,
        dimensions: int | None = None,
        at_once: int = AT_ONCE,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self._source = source
        self._at_once = at_once
        self._pauses = pauses

    async def embed(self, texts: Sequence[str]) -> Vectors:
        given = encodable(texts)
        said = [index for index, text in enumerate(given) if text.strip()]
        found = [
            await self._batch([given[index] for index in said[start : start + self._at_once]])
            for start in range(0, len(said), self._at_once)
        ]
        size = self.dimensions or (await self._batch(["size"])).shape[1]
        vectors = np.zeros((len(given), size), np.float32)
        if found:
            vectors[said] = np.concatenate(found)
        return vectors

    async def close(self) -> None:
        await self._source.close()

    async def _batch(self, texts: list[str]) -> Vectors:
        rows = await retried(partial(self._source.vectors, texts), self._pauses)
        vectors = checked(rows, len(texts), self.dimensions, self.name)
        self.dimensions = vectors.shape[1]
        return vectors
