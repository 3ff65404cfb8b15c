"""A session's memory record, made of what may be kept of it, and handed to a memory service."""

from __future__ import annotations

from typing import Any

from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session

from threadkeep.adapters.adk.events import session_events
from threadkeep.adapters.adk.masking import Masked, masked_anywhere
from threadkeep.adapters.adk.memory_service import ThreadkeepMemoryService
from threadkeep.policy.session_events import session_record


async def persist_memory_from_session(
    session: Session, memory_service: BaseMemoryService | None = None
) -> dict[str, Any]:
    """Call it when a turn has ended. The record holds user texts, media summaries and model texts, redacted
    as `memory_service` keeps them, or, where it is not ours, by the rules of the settings."""
    if memory_service is not None:
        await memory_service.add_session_to_memory(session)
    ours = isinstance(memory_service, ThreadkeepMemoryService)
    return memory_record(session, await memory_service.masking(session) if ours else masked_anywhere())


def memory_record(session: Session, masked: Masked) -> dict[str, Any]:
    shaped = [one for event in session.events for one in session_events(event)]
    started = session.events[0].timestamp if session.events else None
    return session_record(session.id, shaped, masked, session.state, started, session.last_update_time)
