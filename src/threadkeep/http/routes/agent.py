"""Assistants as front ends call them: `/agent/chat`, and `/api/chat` in the form of the reflection module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter

from threadkeep.errors import InvalidInput
from threadkeep.events import UserMessage
from threadkeep.http import chat_schemas, openapi
from threadkeep.http.answering import Answering, as_asked_by
from threadkeep.http.chat_schemas import Medium, within
from threadkeep.http.identity import Chatter, For
from threadkeep.http.requests import KeyHeader, StrictRequest, UploadRoute
from threadkeep.http.responses import REPLAYED, JsonAnswer
from threadkeep.identity.audit import reaching
from threadkeep.ports.chat import Answer, Asked
from threadkeep.ports.clock import system_clock
from threadkeep.scope import Scope

router = APIRouter(tags=["agent"], route_class=UploadRoute)


@router.post(
    "/agent/chat",
    response_model=openapi.AgentReply,
    response_model_exclude_none=True,
    responses=openapi.AGENT_ANSWERS,
    openapi_extra=chat_schemas.MULTIPART,
)
async def agent_chat(
    request: StrictRequest,
    who: Chatter,
    named: For,
    body: chat_schemas.AgentChatBody,
    key: KeyHeader = None,
) -> JsonAnswer:
    """Send a message in a session and get the reply. While every store is down it still answers, without memory."""
    scope = named.scope(who, body.sessionId)
    await request.app.state.limits.by_session(f"{scope.tenant}\n{scope.user}\n{body.sessionId}")
    asked = as_asked_by(who, await _asked(request, body, scope), request)
    taken = await request.answering.take_if_possible(asked, key)
    answer = await request.answering.answer(taken)
    reply = {"sessionId": body.sessionId, "language": answer.language, "reply": answer.text}
    traces = openapi.tool_trace(answer)
    return JsonAnswer(reply | ({"toolTrace": traces} if traces else {}), headers=REPLAYED if taken.replayed else None)


async def _asked(request: StrictRequest, body: chat_schemas.AgentChatBody, scope: Scope) -> Asked:
    state, typed = request.app.state, body.message
    if typed is not None:
        typed = within(typed, state.max_chat_bytes, "message")
    if body.audio is not None and (typed is not None or body.image is not None):
        other = "message" if typed is not None else "image"
        raise InvalidInput("audio", f"stands beside {other}", "send a recording by itself: words beside it are its own")
    if body.audio is not None:
        return await _asked_by_medium(request, ("audio", "voice", body.audio), scope, None)
    if body.image is not None:
        return await _asked_by_medium(request, ("image", "image", body.image), scope, typed)
    if typed is None:
        raise InvalidInput("message", "is missing, and so are audio and image", "give one of them")
    return Asked(scope, typed)


async def _asked_by_medium(request: StrictRequest, medium: Medium, scope: Scope, typed: str | None) -> Asked:
    """Turn a medium into text for the model and for memory; its bytes are passed on to neither."""
    field, modality, body = medium
    state = request.app.state
    mime = body.checked_type(modality, field)
    most = state.settings.max_audio_bytes if modality == "voice" else state.settings.max_image_bytes
    data: Any = getattr(request.state, "upload", None)
    if data is None:
        data = body.bytes_within(most, field)
    if data is None:
        event = body.own_summary(modality, field, typed)
        return _of_medium(request.answering, Asked(scope, event.summary or "", body.language), event)
    language = body.language or await request.answering.language_of(scope)
    found = await state.media.understood(data, mime, language=language, typed=typed, inside=field)
    return _of_medium(request.answering, Asked(scope, found.words), found.event)


def _of_medium(answering: Answering, asked: Asked, event: UserMessage) -> Asked:
    """A language the assistant does not speak, in one recording, must not become the conversation's."""
    event = replace(event, language=answering.spoken(event.language))
    return replace(asked, language=answering.spoken(asked.language), event=event)


@router.get("/agent/health", response_model=openapi.AgentHealth, responses=openapi.AGENT_PROBE)
async def agent_health(request: StrictRequest) -> JsonAnswer:
    """Whether an assistant is configured, and whether it has memory. 200 as long as the process can say so."""
    health = await request.memory.health()
    return JsonAnswer({"status": health.status, "assistant": request.answering.possible, "stores": dict(health.stores)})


@router.post("/api/chat", response_model=openapi.ApiReply, responses=openapi.ANSWERS)
async def api_chat(
    request: StrictRequest,
    who: Chatter,
    named: For,
    body: chat_schemas.ApiChatBody,
    key: KeyHeader = None,
) -> JsonAnswer:
    """The same for front ends that name conversation and user themselves; the user must be the credential's to name."""
    scope = who.reach(reaching(who.place(named.tenant, body.user_id, body.conversation_id)))
    text = within(body.user_message, request.app.state.max_chat_bytes, "user_message")
    asked = as_asked_by(who, Asked(scope, text), request)
    taken = await request.answering.take(asked, key)
    answer = await request.answering.answer(taken)
    reply = {"conversation_id": body.conversation_id, "user_id": body.user_id, "assistant_message": answer.text}
    told = {"reflection": _reflection(answer), "created_at": system_clock().isoformat()}
    return JsonAnswer(reply | told, headers=REPLAYED if taken.replayed else None)


def _reflection(answer: Answer) -> dict[str, Any] | None:
    found = answer.meta.get("reflection")
    if not isinstance(found, dict):
        return None
    return {"summary": str(found.get("summary", "")), "causes": [str(one) for one in found.get("causes", ())]}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
