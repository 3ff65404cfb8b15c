"""Functions and classes under the names that existing applications already call, thin over the core."""

from threadkeep.compat.language import detect_language_bcp47
from threadkeep.compat.memory_service import MemoryService
from threadkeep.compat.memory_tools import (
    before_persist,
    is_persistable_event,
    persist_memory_from_session,
    put_tool_cache,
    redact,
)
from threadkeep.compat.session_store import SessionStore
from threadkeep.compat.state import State

__all__ = [
    "MemoryService",
    "SessionStore",
    "State",
    "before_persist",
    "detect_language_bcp47",
    "is_persistable_event",
    "persist_memory_from_session",
    "put_tool_cache",
    "redact",
]
