"""The chat route as it was, and one call after the reply."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from backend.modules.memory.core import store_conversation

router = APIRouter()


class ChatRequest(BaseModel):
    conversation_id: str
    user_id: str
    message: str


class ChatResponse(BaseModel):
    conversation_id: str
    reply: str


@router.post("/api/chat")
async def chat(request: ChatRequest) -> ChatResponse:
    user_message = request.message
    assistant_message = reply_to(user_message)
    reflection_obj = reflect_on(user_message)
    store_conversation(
        conversation_id=request.conversation_id,
        user_id=request.user_id,
        user_msg=user_message,
        assistant_msg=assistant_message,
        reflection=reflection_obj,  # dict or None
    )
    return ChatResponse(conversation_id=request.conversation_id, reply=assistant_message)


def reply_to(message: str) -> str:
    """Stands in for a model."""
    return f"You said: {message}"


def reflect_on(message: str) -> dict[str, Any] | None:
    """Stands in for a reflection step; not every turn has one."""
    return {"summary": "the user asked something", "causes": ["a question mark"]} if "?" in message else None
