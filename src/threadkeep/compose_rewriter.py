"""Settings to the model that rewrites follow-up questions, where there is one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.agent.query_rewriter import QueryRewriter

_BY_RULE = (None, "", "offline")


def query_rewriter(settings: Settings) -> QueryRewriter | None:
    """None: questions are enriched by rule. Raises `InvalidSetting`, `MissingExtra` and `ModelError`."""
    name = settings.chat_model if settings.rewriter == "auto" else settings.rewriter
    if name in _BY_RULE or settings.rewriter == "none":
        return None
    choice, offline = (import_module(f"threadkeep.models.chat.{part}") for part in ("choice", "offline"))
    seconds = settings.rewriter_timeout_seconds
    chosen = choice.ChatChoice(name, seconds, 0, settings.chat_base_url, settings.ollama_host, settings.ollama_port)
    model = choice.chat_model_for(chosen, offline.OfflineModel())
    return import_module("threadkeep.agent.query_rewriter").QueryRewriter(model, seconds)
