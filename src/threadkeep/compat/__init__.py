"""Functions and classes under the names that existing applications already call, thin over the core."""

from threadkeep.compat.agent import AgentResponder, AgentService, answered_by
from threadkeep.compat.chat_service import SessionStore, detect_language_bcp47
from threadkeep.compat.memory_tools import (
    MemoryService,
    State,
    before_persist,
    is_persistable_event,
    persist_memory_from_session,
    put_tool_cache,
    redact,
)
from threadkeep.compat.reflection import (
    MemoryModule,
    load_recent_context,
    pack_token_record,
    persist_long_term,
    store_conversation,
    store_short_term,
    tokenize_text,
    validate_and_normalize,
)

__all__ = [
    "AgentResponder",
    "AgentService",
    "MemoryModule",
    "MemoryService",
    "SessionStore",
    "State",
    "answered_by",
    "before_persist",
    "detect_language_bcp47",
    "is_persistable_event",
    "load_recent_context",
    "pack_token_record",
    "persist_long_term",
    "persist_memory_from_session",
    "put_tool_cache",
    "redact",
    "store_conversation",
    "store_short_term",
    "tokenize_text",
    "validate_and_normalize",
]
