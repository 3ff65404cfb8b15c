"""`provider:name` to a chat model, through LangChain; None to the one that only quotes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from threadkeep.errors import InvalidSetting, MissingExtra, ModelError
from threadkeep.models.chat import Patience
from threadkeep.models.chat.langchain import LangChainModel
from threadkeep.models.chat.small import NAME as SMALL
from threadkeep.models.chat.small import SmallModel
from threadkeep.models.ollama import ollama_url
from threadkeep.ports.chat import ChatModel

_PROVIDERS = {  # the extra and the package of each
    "google_genai": ("gemini", "langchain_google_genai"),
    "ollama": ("ollama", "langchain_ollama"),
    "openai": ("openai", "langchain_openai"),
    "anthropic": ("anthropic", "langchain_anthropic"),
}
_SMALL_IS_SLOW = 300.0  # seconds
_ALIASES = {"gemini": "google_genai"}


@dataclass(frozen=True, slots=True)
class ChatChoice:
    model: str | None
    timeout: float = 60
    retries: int = 2
    base_url: str | None = None
    ollama_host: str = "localhost"
    ollama_port: int = 11_434


def chat_model_for(choice: ChatChoice, offline: ChatModel) -> ChatModel:
    """Raises `InvalidSetting` and `MissingExtra`. Nothing is connected yet."""
    if choice.model in (None, "", "offline"):
        return offline
    if choice.model == SMALL:
        return SmallModel(max(choice.timeout, _SMALL_IS_SLOW))
    provider, _, name = (choice.model or "").partition(":")
    provider = _ALIASES.get(provider, provider)
    if provider not in _PROVIDERS or not name:
        known = ", ".join(f"{one}:…" for one in (*_ALIASES, *_PROVIDERS))
        raise InvalidSetting("THREADKEEP_CHAT_MODEL", "names no chat model", f"use offline, small or one of {known}")
    extra, package = _PROVIDERS[provider]
    try:
        import_module("langchain.chat_models")
        import_module(package)
    except ModuleNotFoundError:
        raise MissingExtra(extra, f"the chat models of {provider}") from None
    model = _made(provider, name, choice)
    return LangChainModel(model, f"{provider}:{name}", Patience(choice.timeout, choice.retries))


def gemini_name(model: str | None) -> str | None:
    """Which of Gemini's models `provider:name` is; None for one of another provider."""
    provider, _, name = (model or "").partition(":")
    return name or None if _ALIASES.get(provider, provider) == "google_genai" else None


def _made(provider: str, name: str, choice: ChatChoice) -> Any:
    """Retries are ours: two counts would multiply."""
    from langchain.chat_models import init_chat_model

    options: dict[str, Any] = {"timeout": choice.timeout, "max_retries": 1 if provider == "google_genai" else 0}
    if provider == "ollama":
        where = choice.base_url or ollama_url(choice.ollama_host, choice.ollama_port)
        options = {"base_url": where, "client_kwargs": {"timeout": choice.timeout}}
    elif choice.base_url is not None:
        options["base_url"] = choice.base_url
    if provider == "openai":
        options["stream_usage"] = True
    try:
        return cast("Any", init_chat_model(name, model_provider=provider, **options))
    except Exception as error:  # a missing key, most often; what it says may hold one
        raise ModelError(f"{provider}:{name} cannot be used ({type(error).__name__}): is its key set?") from None
