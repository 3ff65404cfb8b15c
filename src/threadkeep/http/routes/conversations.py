"""Conversations: create, send a message, read, stream, erase."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import WithJsonSchema
from starlette.responses import Response, StreamingResponse

from threadkeep.agent.window import unanswered
from threadkeep.errors import Conflict, NotFound, ScopeErased
from threadkeep.http import chat_schemas, openapi
from threadkeep.http.answering import Taken, as_asked_by
from threadkeep.http.chat_schemas import within
from threadkeep.http.identity import Chatter, Eraser, For, Reader, StillAllowed
from threadkeep.http.requests import KeyHeader, StrictRequest, StrictRoute
from threadkeep.http.responses import REPLAYED, JsonAnswer, proven
from threadkeep.http.schemas import LARGEST_NUMBER, LAST_EVENT_HEADER, PAGE_CHARS, MessageId, ScopePart
from threadkeep.identity.audit import reaching
from threadkeep.memory import Memory
from threadkeep.model import Message
from threadkeep.ports.chat import Answer, Asked
from threadkeep.scope import Scope

router = APIRouter(prefix="/conversations", tags=["conversations"], route_class=StrictRoute)
EVENTS = "text/event-stream"
_FIELDS = {"event": "string", "id": "string", "data": "string", "retry": "integer"}
_EVENT = {
    "type": "object",
    "description": "One event; its `data` is JSON",
    "properties": {name: {"type": type_} for name, type_ in _FIELDS.items()},
}

# An id may hold slashes: in paths it is all that stands before what follows it (`:path`); encoded ones (`%2F`) always
# belong to it, see `requests.py`.
ConversationId = Annotated[ScopePart, Path(alias="conversation_id")]
LastEvent = Annotated[
    int | None,
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}),  # a header is never null
    Header(alias=LAST_EVENT_HEADER, ge=0, le=LARGEST_NUMBER, description="The last event's id; 0: all"),
]


@router.get("", response_model=openapi.ConversationsAnswer, responses=openapi.READS)
async def everything(
    who: Reader, named: For, request: StrictRequest, query: Annotated[chat_schemas.ListQuery, Query()]
) -> JsonAnswer:
    """The caller's conversations, latest activity first."""
    page = await request.memory.conversations(named.scope(who), query.after, query.limit)
    return JsonAnswer({"items": [item.as_dict() for item in page], "after": page.after})


@router.post("", status_code=201, response_model=openapi.ConversationCreated, responses=openapi.ANSWERS)
async def create(
    who: Chatter,
    named: For,
    request: StrictRequest,
    body: chat_schemas.ConversationBody | None = None,
    key: KeyHeader = None,
) -> JsonAnswer:
    """Begin a conversation; an assistant opens it with its greeting. With a key the request may be repeated safely."""
    chosen, language = (body.conversation_id, body.language) if body else (None, None)
    language = request.answering.spoken(language)
    place = named.scope(who)
    made = uuid.uuid4() if key is None else uuid.UUID(bytes=place.digest("conversation", key))
    scope = reaching(place.with_conversation(str(made) if chosen is None else chosen))
    if (key is not None or chosen is not None) and await is_known(request.memory, scope):
        if key is None:
            raise Conflict("there is a conversation of this id already")
        # As it was created: concurrent requests with one key create the conversation and its greeting once.
        found = await request.memory.history(scope, 1_000)
        language = found.language or language
        if found.messages:
            greeting = request.answering.greeting_of(found)
        else:
            greeting = await request.answering.greet(found.scope, language)
        return JsonAnswer(_begun(scope, language, greeting), 201, REPLAYED)
    begun = (await request.memory.touch(scope)).scope
    if language is not None:
        await request.memory.set_language(scope, language)
    return JsonAnswer(_begun(scope, language, await request.answering.greet(begun, language)), 201)


def _begun(scope: Scope, language: str | None, greeting: Answer | None) -> dict[str, Any]:
    told = {"conversation_id": scope.conversation, "language": language, "greeting": None}
    if greeting is None:
        return told
    opened = {"message_id": greeting.message_id, "content": greeting.text, "language": greeting.language}
    return told | {"language": language or greeting.language, "greeting": opened}


@router.post(
    "/{conversation_id:path}/messages",
    status_code=202,
    response_model=openapi.MessageTaken,
    responses={
        200: {"model": openapi.MessageAnswered, "description": "With `wait`: the answer"},
        **openapi.ANSWERS,
    },
)
async def say(
    request: StrictRequest,
    who: Chatter,
    named: For,
    conversation_id: ConversationId,
    body: chat_schemas.MessageBody,
    wait: Annotated[bool, Query(description="Wait for the answer and return it, with 200")] = False,
    key: KeyHeader = None,
) -> JsonAnswer:
    """Keep a message and have it answered. 202 as soon as it is kept: the answer follows in history and stream."""
    scope = named.scope(who, conversation_id)
    text = within(body.content, request.app.state.max_chat_bytes, "content")
    scope = await need_known(request.memory, scope)
    asked = as_asked_by(who, Asked(scope, text, request.answering.spoken(body.language)), request)
    taken = await request.answering.take(asked, key)
    headers = REPLAYED if taken.replayed else None
    if not wait:
        await request.answering.begin_if_unanswered(taken)
        return JsonAnswer(_taken(taken, request.answering.possible), 202, headers)
    answer = await request.answering.answer(taken)
    told = {name: _taken(taken, True)[name] for name in ("conversation_id", "message_id", "seq")}
    return JsonAnswer(told | {"answer": openapi.reply_of(answer)}, 200, headers)


def _taken(taken: Taken, answered: bool) -> dict[str, Any]:
    assert taken.receipt is not None
    return {
        "conversation_id": taken.asked.scope.conversation,
        "message_id": taken.message_id,
        "seq": taken.receipt.seq,
        "status": taken.receipt.status,
        "redacted": dict(taken.receipt.redacted),
        "answer": "pending" if answered else "none",
    }


@router.get("/{conversation_id:path}/stats", response_model=openapi.StatsAnswer, responses=openapi.READS)
async def stats(who: Reader, named: For, request: StrictRequest, conversation_id: ConversationId) -> JsonAnswer:
    """What is kept of the conversation, in numbers: messages, and queries and passages of its thread."""
    scope = named.scope(who, conversation_id)
    await need_known(request.memory, scope)
    return JsonAnswer((await request.memory.stats(scope)).as_dict())


@router.get("/{conversation_id:path}/history", response_model=openapi.ConversationHistory, responses=openapi.READS)
async def history(
    who: Reader,
    named: For,
    request: StrictRequest,
    conversation_id: ConversationId,
    query: Annotated[chat_schemas.PageQuery, Query()],
) -> JsonAnswer:
    """Messages and answers, in order: the newest page, or the one before `before`."""
    scope = named.scope(who, conversation_id)
    found = await request.memory.history(scope, query.limit, query.before, PAGE_CHARS)
    if not found.messages:
        await need_known(request.memory, scope)
    waiting = await _waiting(request.memory, scope, found.messages, query.before)
    told = [one.id for one in found.messages if one.id in waiting and not request.answering.is_under_way(scope, one.id)]
    return JsonAnswer({"conversation_id": conversation_id, "unanswered": told} | found.as_dict())


async def _waiting(memory: Memory, scope: Scope, page: Sequence[Message], before: int | None) -> frozenset[str]:
    """Answers to the last messages of an older page stand on the page behind it."""
    waiting = unanswered(page)
    if before is None or not waiting:
        return waiting
    behind = (await memory.history(scope, _BEHIND, before + _BEHIND)).messages
    return unanswered([*page, *(one for one in behind if one.seq >= before)])


_BEHIND = 20  # messages: more than usually wait at once


@router.get(
    "/{conversation_id:path}/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`message` events with the message's seq as id; between them `delta` (pieces of an answer"
            " that is being made), `failed` and `erased`",
            "content": {EVENTS: {"schema": _EVENT}},
        },
        **openapi.READS,
    },
)
async def stream(
    request: StrictRequest,
    who: Reader,
    named: For,
    conversation_id: ConversationId,
    last: LastEvent = None,
) -> StreamingResponse:
    """Listen to the conversation (server-sent events). `Last-Event-ID` resumes after what was seen, without a gap and
    without doubles, also after the service was restarted; without it the stream begins now. It ends with the
    credential of its request."""
    scope = named.scope(who, conversation_id)
    await need_known(request.memory, scope)
    after = await request.streams.position(scope, last)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    frames = request.streams.frames(scope, after, StillAllowed(request, scope))
    return StreamingResponse(frames, media_type=EVENTS, headers=headers)


@router.delete(
    "/{conversation_id:path}/messages/{message_id:path}", response_model=openapi.ProofAnswer, responses=openapi.ERASES
)
async def forget_message(
    request: StrictRequest,
    who: Eraser,
    named: For,
    conversation_id: ConversationId,
    message_id: Annotated[MessageId, Path()],
    key: KeyHeader = None,
) -> Response:
    """Erase one message everywhere, its vectors too, with a receipt."""
    scope = named.scope(who, conversation_id)
    await need_known(request.memory, scope)
    return proven(request, await request.memory.erase(scope, message_id))


@router.delete("/{conversation_id:path}", response_model=openapi.ProofAnswer, responses=openapi.ERASES)
async def forget(
    request: StrictRequest,
    who: Eraser,
    named: For,
    conversation_id: ConversationId,
    key: KeyHeader = None,
) -> Response:
    """Erase a conversation everywhere, its vectors too, with a receipt. Safe to repeat."""
    scope = named.scope(who, conversation_id)
    known = await is_known(request.memory, scope, or_erased=True)
    proof = await request.memory.erase(scope)  # in any case: it may hold nothing but queries to documents
    request.streams.end(scope)
    # The database's file is found, and rewritten, whatever was erased.
    if not known and not any(part.found for name, part in proof.stores.items() if name != "file"):
        raise _nowhere()
    return proven(request, proof)


async def need_known(memory: Memory, scope: Scope) -> Scope:
    """With its generation. Raises `NotFound`, the same for a conversation that never was and for another user's.

    A conversation that may be in a Redis that does not answer is taken for known.
    """
    found = await memory.history(scope, 1)
    if not (found.messages or found.degraded or await _has_begun(memory, scope)):
        kept = await memory.stats(scope)  # as a thread or a session of a framework, and so in the list
        if not (kept.threads.count or kept.sessions):
            raise _nowhere()
    return found.scope


def _nowhere() -> NotFound:
    return NotFound("there is no such user or conversation")


async def is_known(memory: Memory, scope: Scope, *, or_erased: bool = False) -> bool:
    found = await memory.history(scope, 1)
    return bool(found.messages or (or_erased and found.scope.generation)) or await _has_begun(memory, scope)


async def _has_begun(memory: Memory, scope: Scope) -> bool:
    """Without a message yet."""
    try:
        return await memory.session(scope) is not None or (await memory.stats(scope)).conversations > 0
    except ScopeErased:
        return False
