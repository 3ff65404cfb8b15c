"""For Prometheus: what was counted, by this process or by all that share a folder with it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from threadkeep.compose.metrics import scraped_meter
from threadkeep.errors import CapabilityMissing
from threadkeep.http import openapi
from threadkeep.http.identity import Scraper
from threadkeep.http.strict_request import StrictRoute
from threadkeep.settings import Settings

router = APIRouter(tags=["health"], route_class=StrictRoute)
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
    from threadkeep.metrics.families import families  # with the library, an extra

    content_type, body = meter.exposition(request.headers.get("accept", ""), families(facts))
    return Response(body, media_type=content_type)
