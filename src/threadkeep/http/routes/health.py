"""Whether the process is up, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Request

from threadkeep.errors import StoreUnavailable
from threadkeep.http.answers import Health, Readiness
from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.openapi import PROBE
from threadkeep.http.strict_request import StrictRoute

router = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/healthz", response_model=Health, responses=PROBE)
async def alive() -> JsonAnswer:
    """The process answers. Nothing else is looked at."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Readiness, responses=PROBE)
async def ready(request: Request) -> JsonAnswer:
    """A store answers a real read; which ones, and how far the archive is behind. 503 when none does."""
    health = await request.app.state.memory.health()
    if health.status == "down":
        raise StoreUnavailable("no store answers")
    return JsonAnswer(health.as_dict())
