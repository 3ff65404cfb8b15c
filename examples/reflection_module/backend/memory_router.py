"""A route that was there before the memory module, and stays as it was."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()


@router.get("/api/memory/status")
async def status() -> dict[str, str]:
    return {"status": "ok"}
