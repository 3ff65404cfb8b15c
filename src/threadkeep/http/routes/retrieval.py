"""Retrieval as front ends and gateways call it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request

from threadkeep.http import openapi
from threadkeep.http.chat_schemas import RetrievalBody
from threadkeep.http.fields import CONVERSATION_HEADER, decoded_header
from threadkeep.http.identity import For, Reader
from threadkeep.http.responses import JsonAnswer
from threadkeep.http.strict_request import StrictRoute
from threadkeep.mcp.answers import RetrieveAnswer
from threadkeep.scope import MAX_PART_LENGTH

router = APIRouter(tags=["retrieval"], route_class=StrictRoute)
Conversation = Annotated[
    str | None,
    Header(
        alias=CONVERSATION_HEADER,
        description="Follow-up questions refer to it; without it, or with an empty one, nothing is remembered",
        max_length=MAX_PART_LENGTH,
        pattern="^([!-~]([ -~]*[!-~])?)?$",
    ),
]


@router.post("/retrieval/query", response_model=RetrieveAnswer, responses=openapi.ANSWERS)
@router.post("/query", response_model=RetrieveAnswer, responses=openapi.ANSWERS)
async def query(
    request: Request, who: Reader, named: For, body: RetrievalBody, conversation: Conversation = None
) -> JsonAnswer:
    """Passages of documents the caller may read that bear on the question, best first."""
    scope = named.scope(who, decoded_header(CONVERSATION_HEADER, conversation) or None)
    retrieval = await request.app.state.retrieval()
    from threadkeep.agent.retrieval_turn import RetrievalRequest  # with the graph, an extra

    asked = RetrievalRequest(
        scope.whole_user,
        who.access(scope),
        body.query,
        body.topK,
        body.useCache,
        scope.conversation,
        request.state.request_id,
    )
    return JsonAnswer((await retrieval.ask(asked)).as_dict())
