"""Probes and metrics: whether the process runs, whether it can store a turn, and what Prometheus scrapes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from threadkeep.compose.memory import scraped_meter
from threadkeep.errors import CapabilityMissing, StoreUnavailable
from threadkeep.http import openapi
from threadkeep.http.identity import Scraper
from threadkeep.http.openapi import PROBE, Health, Readiness
from threadkeep.http.requests import StrictRoute
from threadkeep.http.responses import JsonAnswer, Problem
from threadkeep.ports.health import Health as MemoryHealth
from threadkeep.settings import Settings

router = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/healthz", response_model=Health, responses=PROBE)
async def alive() -> JsonAnswer:
    """The process answers. Nothing else is looked at."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Readiness, responses=PROBE)
async def ready(request: Request) -> Response:
    """Whether a turn can be stored, which stores answer, what is to be mended, and whether callers need a
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


_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus's text format", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get("/metrics", response_class=Response, responses={**_TEXT, **openapi.SCRAPES})
async def metrics(request: Request, who: Scraper) -> Response:
    """Counts, sizes and times of the whole store: for a SUPER_ADMIN's credential that allows `metrics`."""
    who.need_whole_store()
    settings: Settings = request.app.state.settings
    if settings.metrics == "off":
        raise CapabilityMissing("nothing is measured here: THREADKEEP_METRICS is off")
    meter, facts = scraped_meter(settings), await request.app.state.facts()
    from threadkeep.metrics.prometheus import families  # with the library, an extra

    content_type, body = meter.exposition(request.headers.get("accept", ""), families(facts))
    return Response(body, media_type=content_type)
