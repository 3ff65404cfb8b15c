"""For operators: bring the knowledge folder into the index."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from threadkeep.http import answers, chat_schemas, openapi
from threadkeep.http.fields import ScopePart
from threadkeep.http.identity import Admin, For
from threadkeep.http.responses import JsonAnswer
from threadkeep.http.strict_request import KeyHeader, StrictRequest, StrictRoute

router = APIRouter(prefix="/admin", tags=["admin"], route_class=StrictRoute)


@router.post(
    "/index",
    status_code=202,
    response_model=answers.IndexJob,
    responses={200: {"model": answers.IndexJob, "description": "With `wait`: it has ended"}, **openapi.ANSWERS},
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


@router.get("/index/{job_id}", response_model=answers.IndexJob, responses=openapi.READS)
async def index_progress(
    request: StrictRequest, who: Admin, named: For, job_id: Annotated[ScopePart, Path()]
) -> JsonAnswer:
    """How far it has come."""
    return JsonAnswer(request.indexing.find(named.scope(who).tenant, job_id).as_dict())
