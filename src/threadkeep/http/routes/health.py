"""Whether the process is up, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Request

from threadkeep.http.answers import Health
from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.openapi import PROBE
from threadkeep.http.strict_request import StrictRoute
from threadkeep.scope import Scope

router = APIRouter(tags=["health"], route_class=StrictRoute)
_NOBODY = Scope("threadkeep", "readyz", "readyz")


@router.get("/healthz", response_model=Health, responses=PROBE)
async def alive() -> JsonAnswer:
    """The process answers. Nothing else is looked at."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=PROBE)
async def ready(request: Request) -> JsonAnswer:
    """The store answers a real read."""
    await request.app.state.memory.history(_NOBODY, limit=1)
    return JsonAnswer({"status": "ok"})
