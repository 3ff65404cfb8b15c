"""Whether the process is up, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from threadkeep.errors import StoreUnavailable
from threadkeep.http.answers import Health, Readiness
from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.openapi import PROBE
from threadkeep.http.problem import Problem
from threadkeep.http.strict_request import StrictRoute
from threadkeep.ports.health import Health as MemoryHealth

router = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/healthz", response_model=Health, responses=PROBE)
async def alive() -> JsonAnswer:
    """The process answers. Nothing else is looked at."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Readiness, responses=PROBE)
async def ready(request: Request) -> Response:
    """Whether a turn can be stored, which stores answer, what is to be mended, and whether callers are asked for a
    credential. 503 when no turn can be stored."""
    health: MemoryHealth = await request.app.state.memory.health()
    told = health.as_dict() | {"authentication": request.app.state.authentication}
    if health.status != "down":
        return JsonAnswer(told)
    del told["status"]  # a problem has one of its own
    fix = health.findings[0].fix if health.findings else None
    if set(health.stores.values()) == {"away"}:
        problem = Problem(503, StoreUnavailable.code, "no store answers", fix=fix, retryable=True, extra=told)
    else:
        problem = Problem(503, "cannot_store", "no turn can be stored now", fix=fix, retryable=True, extra=told)
    return problem.answer(request.scope)
