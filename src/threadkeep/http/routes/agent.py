"""Assistants as front ends call them: `/agent/chat`, and `/api/chat` in the form of the reflection module."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from threadkeep.audit import reaching
from threadkeep.errors import CapabilityMissing, InvalidInput
from threadkeep.http import chat_answers, chat_schemas, openapi
from threadkeep.http.chat_schemas import within
from threadkeep.http.identity import Chatter, For
from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.opened import Answers, KeyHeader, Opened
from threadkeep.http.strict_request import StrictRoute
from threadkeep.ports.clock import system_clock
from threadkeep.ports.responder import Answer, Asked

router = APIRouter(tags=["agent"], route_class=StrictRoute)


@router.post(
    "/agent/chat",
    response_model=chat_answers.AgentReply,
    response_model_exclude_none=True,
    responses=openapi.AGENT_ANSWERS,
)
async def agent_chat(
    request: Request,
    who: Chatter,
    named: For,
    answering: Answers,
    body: chat_schemas.AgentChatBody,
    key: KeyHeader = None,
) -> JsonAnswer:
    """Say something in a session and get the reply. With every store away it answers all the same, without memory."""
    scope = named.scope(who, body.sessionId)
    await request.app.state.limits.by_session(f"{scope.tenant}\n{scope.user}\n{body.sessionId}")
    text = _said(request, body)
    asked = Asked(scope, text, token=who.token, request_id=request.state.request_id)
    taken = await answering.take_if_possible(asked, key)
    answer = await answering.answer(taken)
    headers = {"Idempotent-Replayed": "true"} if taken.receipt and taken.receipt.replayed else None
    reply = {"sessionId": body.sessionId, "language": answer.language, "reply": answer.text}
    traces = chat_answers.traces_of(answer)
    return JsonAnswer(reply | ({"toolTrace": traces} if traces else {}), headers=headers)


def _said(request: Request, body: chat_schemas.AgentChatBody) -> str:
    if body.audio is not None:
        body.audio.checked(request.app.state.max_audio_bytes)
    if body.message is not None:
        return within(body.message, request.app.state.max_chat_bytes, "message")
    if body.audio is None:
        raise InvalidInput("message", "and audio are both missing", "give one of the two")
    raise CapabilityMissing("recordings cannot be understood yet: send the words as `message`")


@router.get("/agent/health", response_model=chat_answers.AgentHealth, responses=openapi.AGENT_PROBE)
async def agent_health(memory: Opened, answering: Answers) -> JsonAnswer:
    """Whether somebody answers, and whether they remember. 200 as long as the process can say so."""
    health = await memory.health()
    return JsonAnswer({"status": health.status, "assistant": answering.possible, "stores": dict(health.stores)})


@router.post("/api/chat", response_model=chat_answers.ApiReply, responses=openapi.ANSWERS)
async def api_chat(
    request: Request,
    who: Chatter,
    named: For,
    answering: Answers,
    body: chat_schemas.ApiChatBody,
    key: KeyHeader = None,
) -> JsonAnswer:
    """The same for front ends that name conversation and user themselves; the user must be the credential's to name."""
    scope = who.reach(reaching(who.place(named.tenant, body.user_id, body.conversation_id)))
    text = within(body.user_message, request.app.state.max_chat_bytes, "user_message")
    asked = Asked(scope, text, token=who.token, request_id=request.state.request_id)
    taken = await answering.take(asked, key)
    answer = await answering.answer(taken)
    headers = {"Idempotent-Replayed": "true"} if taken.receipt and taken.receipt.replayed else None
    reply = {"conversation_id": body.conversation_id, "user_id": body.user_id, "assistant_message": answer.text}
    told = {"reflection": _reflection(answer), "created_at": system_clock().isoformat()}
    return JsonAnswer(reply | told, headers=headers)


def _reflection(answer: Answer) -> dict[str, Any] | None:
    found = answer.meta.get("reflection")
    if not isinstance(found, dict):
        return None
    return {"summary": str(found.get("summary", "")), "causes": [str(one) for one in found.get("causes", ())]}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
