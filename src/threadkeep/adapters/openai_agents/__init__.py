"""OpenAI Agents: `ThreadkeepSession`. Needs the extra `openai-agents`."""

from __future__ import annotations

from threadkeep.errors import MissingExtra

try:
    from threadkeep.adapters.openai_agents.session import ThreadkeepSession
except ModuleNotFoundError as error:
    if (error.name or "").startswith("threadkeep"):
        raise
    raise MissingExtra("openai-agents", "threadkeep.adapters.openai_agents") from None

__all__ = ["ThreadkeepSession"]
