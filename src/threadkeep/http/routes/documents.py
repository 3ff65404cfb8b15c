"""Documents: ask them as front ends and gateways do, and for operators, index the knowledge folder."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request

from threadkeep.http import chat_schemas, openapi
from threadkeep.http.chat_schemas import RetrievalBody
from threadkeep.http.identity import Admin, For, Reader
from threadkeep.http.requests import KeyHeader, StrictRequest, StrictRoute
from threadkeep.http.responses import JsonAnswer
from threadkeep.http.schemas import CONVERSATION_HEADER, ScopePart, decoded_header
from threadkeep.mcp.schemas import RetrieveAnswer
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


admin_router = APIRouter(prefix="/admin", tags=["admin"], route_class=StrictRoute)


@admin_router.post(
    "/index",
    status_code=202,
    response_model=openapi.IndexJob,
    responses={200: {"model": openapi.IndexJob, "description": "With `wait`: it has ended"}, **openapi.ANSWERS},
)
async def index(
    request: StrictRequest,
    who: Admin,
    named: For,
    body: chat_schemas.IndexBody | None = None,
    wait: Annotated[bool, Query(description="Answer when it has ended, with 200")] = False,
    key: KeyHeader = None,
) -> JsonAnswer:
    """Index the knowledge folder (THREADKEEP_KNOWLEDGE_PATH) for the caller's tenant; only what changed is done.

    The assistant's own documents are one tenant's: for another's, 403 says so."""
    indexing = request.indexing
    datasource = indexing.datasource if body is None or body.datasource is None else body.datasource
    job = indexing.begin(named.scope(who).tenant, datasource, key)
    if wait:
        return JsonAnswer((await indexing.finished(job)).as_dict(), 200)
    return JsonAnswer(job.as_dict(), 202)


@admin_router.get("/index/{job_id}", response_model=openapi.IndexJob, responses=openapi.READS)
async def index_progress(
    request: StrictRequest, who: Admin, named: For, job_id: Annotated[ScopePart, Path()]
) -> JsonAnswer:
    """How far it has come."""
    return JsonAnswer(request.indexing.find(named.scope(who).tenant, job_id).as_dict())
