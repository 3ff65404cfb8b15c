"""Memory's verbs, one endpoint each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from threadkeep.errors import InvalidInput
from threadkeep.http import openapi, schemas
from threadkeep.http.encoding import encoded
from threadkeep.http.identity import Eraser, Reader, Writer
from threadkeep.http.requests import KeyHeader, StrictRequest, StrictRoute
from threadkeep.http.responses import REPLAYED, JsonAnswer, proven
from threadkeep.http.schemas import KEY_HEADER, PAGE_CHARS, PAGE_MESSAGES
from threadkeep.model import Exported, Shape, in_shape

router = APIRouter(prefix="/v1/memory", tags=["memory"], route_class=StrictRoute)
NDJSON = "application/x-ndjson"


@router.post("/append", response_model=openapi.ReceiptAnswer, responses=openapi.WRITES)
async def append(who: Writer, request: StrictRequest, body: schemas.AppendBody, key: KeyHeader = None) -> JsonAnswer:
    """Keep what policy admits, all or nothing. With a key the request may be repeated safely."""
    if key is not None and body.key is not None and key != body.key:
        raise InvalidInput("key", f"differs from the {KEY_HEADER} header", "give one of the two")
    if any(event.needs_to_be_trusted for event in body.events):
        who.need("write_as")
    events = [event.event() for event in body.events]
    receipt = await request.memory.append(body.scope.scope(who), events, body.key if key is None else key, body.index)
    return JsonAnswer(receipt.as_dict(), headers=REPLAYED if receipt.replayed else None)


@router.get("/history", response_model=openapi.HistoryAnswer, responses=openapi.READS)
async def history(who: Reader, request: StrictRequest, query: Annotated[schemas.HistoryQuery, Query()]) -> JsonAnswer:
    """The newest messages of a conversation, in order: a page of them, and in `before` the cursor of the older ones."""
    limit = None if query.limit is None else min(query.limit, PAGE_MESSAGES)
    found = await request.memory.history(query.scope(who), limit, query.before, PAGE_CHARS)
    return JsonAnswer(found.as_dict())


@router.post("/recall", response_model=openapi.RecallAnswer, responses=openapi.ASKS)
async def recall(who: Reader, request: StrictRequest, body: schemas.RecallBody) -> JsonAnswer:
    """Messages of this user that bear on the query, best first."""
    found = await request.memory.recall(body.scope.scope(who), body.query, body.k, body.budget, body.conversation)
    return JsonAnswer(found.as_dict())


@router.get("/conversations", response_model=openapi.ConversationsAnswer, responses=openapi.READS)
async def conversations(
    who: Reader, request: StrictRequest, query: Annotated[schemas.ConversationsQuery, Query()]
) -> JsonAnswer:
    """The user's conversations, latest activity first."""
    page = await request.memory.conversations(query.scope(who), query.after, query.limit)
    return JsonAnswer({"items": [item.as_dict() for item in page], "after": page.after})


@router.get("/stats", response_model=openapi.StatsAnswer, responses=openapi.READS)
async def stats(
    who: Reader, request: StrictRequest, query: Annotated[schemas.OptionalScopeQuery, Query()]
) -> JsonAnswer:
    """Counts for a scope, or for the whole store."""
    found = await request.memory.stats(query.scope(who))
    return JsonAnswer(found.as_dict())


@router.post("/erase", response_model=openapi.ProofAnswer, responses=openapi.WRITES)
async def erase(who: Eraser, request: StrictRequest, body: schemas.EraseBody, key: KeyHeader = None) -> Response:
    """Forget a message, a conversation or a whole user. Safe to repeat; 200 means that everything was deleted."""
    return proven(request, await request.memory.erase(body.scope.scope(who), body.message_id))


@router.post("/forget", response_model=openapi.ProofAnswer, responses=openapi.WRITES)
async def forget(who: Eraser, request: StrictRequest, body: schemas.ForgetBody, key: KeyHeader = None) -> Response:
    """Erase every message that says the text, and refuse it from everyone but the user. Safe to repeat."""
    return proven(request, await request.memory.forget(body.scope.scope(who), body.text))


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {"description": "JSON Lines, a conversation each", "content": {NDJSON: {"schema": {"type": "string"}}}},
        **openapi.READS,
    },
)
async def export(
    who: Reader, request: StrictRequest, query: Annotated[schemas.ExportQuery, Query()]
) -> StreamingResponse:
    """Every conversation of the scope, or of the whole store, as JSON Lines.

    A store that fails on the way cuts the answer off: it then ends without HTTP's last chunk.
    """
    records = request.memory.export(query.scope(who))
    first = await anext(records, None)  # what fails at once is still a problem document
    return StreamingResponse(_lines(first, records, query.format), media_type=NDJSON)


async def _lines(first: Exported | None, rest: AsyncIterator[Exported], shape: Shape) -> AsyncIterator[bytes]:
    if first is not None:
        yield _line(first, shape)
    async for record in rest:
        yield _line(record, shape)


def _line(record: Exported, shape: Shape) -> bytes:
    told = in_shape(record, shape)
    return b"" if told is None else encoded(told) + b"\n"
