"""A session's memory record, made of what may be kept of it, and handed to a memory service."""

from __future__ import annotations

from typing import Any

from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session

from threadkeep.adapters.adk.events import message_in, said_in
from threadkeep.adapters.adk.masking import Masked, masked_anywhere
from threadkeep.adapters.adk.memory_service import ThreadkeepMemoryService
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.policy.fields import is_language_tag, kept_meta


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
    said = [message for event in session.events if (message := message_in(said_in(event))) is not None]
    users = [one for one in said if isinstance(one, UserMessage)]
    locale, intent = session.state.get("user.locale"), session.state.get("conversation.intentSummary")
    return {
        "sessionId": session.id,
        "user_messages": [masked(one.text or "") for one in users if one.modality == "text"],
        "user_media_summaries": [
            {"summary": masked(one.summary), "modality": one.modality, "meta": kept_meta(one.meta, one.modality)[0]}
            for one in users
            if one.modality != "text" and one.summary
        ],
        "model_responses": [masked(one.text or "") for one in said if isinstance(one, ModelResponse)],
        "meta": {
            "startedAt": session.events[0].timestamp if session.events else None,
            "endedAt": session.last_update_time,
            "locale": locale if is_language_tag(locale) else None,
            "intent": masked(intent) if isinstance(intent, str) else None,
        },
    }
