"""The memory tools under the names this repository knows."""

from threadkeep.adapters.adk import persist_memory_from_session, put_tool_cache
from threadkeep.compat import is_persistable_event, redact

__all__ = ["is_persistable_event", "persist_memory_from_session", "put_tool_cache", "redact"]
