"""Google ADK: session service, memory service and plugin. Needs the extra `adk`."""

from __future__ import annotations

from threadkeep.errors import MissingExtra

try:
    from threadkeep.adapters.adk.ledger import TurnLimits
    from threadkeep.adapters.adk.memory_service import ThreadkeepMemoryService, persist_memory_from_session
    from threadkeep.adapters.adk.plugin import ThreadkeepPlugin
    from threadkeep.adapters.adk.session_service import ThreadkeepSessionService
    from threadkeep.adapters.adk.state import put_tool_cache
except ModuleNotFoundError as error:
    if (error.name or "").startswith("threadkeep"):
        raise
    raise MissingExtra("adk", "threadkeep.adapters.adk") from None

__all__ = [
    "ThreadkeepMemoryService",
    "ThreadkeepPlugin",
    "ThreadkeepSessionService",
    "TurnLimits",
    "persist_memory_from_session",
    "put_tool_cache",
]
