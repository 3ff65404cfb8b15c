"""The concierge's tools: they ask the hotel's own backend, with the guest's own token."""

from __future__ import annotations

import os
from typing import Any

import httpx

from threadkeep.agent.tools import ToolContext

_BACKEND = "HOTEL_API_URL"


async def find_rooms(context: ToolContext, arrival: str, nights: int, guests: int = 2) -> Any:
    """Free rooms and their prices. `arrival` is a date, YYYY-MM-DD."""
    return await _asked(context, "GET", "/rooms", params={"arrival": arrival, "nights": nights, "guests": guests})


async def reserve_table(context: ToolContext, date: str, time: str, guests: int, phone: str | None = None) -> Any:
    """Reserve a table in the restaurant. `date` is YYYY-MM-DD, `time` HH:MM; without `phone` the number that the guest
    gave earlier in this talk is used."""
    number = phone or await context.slot("PHONE")
    if number is None:
        return {"error": "no phone number is known; ask the guest for one"}
    body = {"date": date, "time": time, "guests": guests, "phone": number}
    return await _asked(context, "POST", "/restaurant/reservations", json=body)


async def _asked(context: ToolContext, method: str, path: str, **what: Any) -> Any:
    headers = {"X-Request-ID": context.request_id} if context.request_id else {}
    if context.token:
        headers["Authorization"] = f"Bearer {context.token}"
    base = os.environ.get(_BACKEND, "http://127.0.0.1:8090")
    async with httpx.AsyncClient(base_url=base, timeout=10) as hotel:
        reply = await hotel.request(method, path, headers=headers, **what)
    return reply.json() if reply.is_success else {"error": f"the hotel answered {reply.status_code}"}
