"""The memory tools under the names this repository knows."""

from threadkeep.adapters import adk
from threadkeep.adapters.adk import put_tool_cache
from threadkeep.compat import is_persistable_event, redact

__all__ = ["is_persistable_event", "persist_memory_from_session", "put_tool_cache", "redact", "remember_in"]

_memories = None


def remember_in(memories):
    """The memory service of the bot that runs; without one, sessions go where `DATABASE_URL` and `REDIS_URL` say."""
    global _memories
    _memories = memories


def persist_memory_from_session(session):
    """Stored whether it is awaited or not; an `await` gives the session's record."""
    return adk.persist_memory_from_session(session, _memories)
