"""A session service on each database; the servers' are shared, so each test has a tenant of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from threadkeep.adapters.adk import ThreadkeepSessionService

Open = Callable[..., ThreadkeepSessionService]


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Keyword arguments of `from_url`."""
    tenant = f"t-{uuid4()}"
    if request.param in ("postgres", "mariadb"):
        return {"url": request.getfixturevalue(f"{request.param}_server").url, "tenant": tenant}
    redis = request.getfixturevalue("redis_server").url if request.param == "redis" else None
    return {"url": f"sqlite:///{tmp_path / 'sessions.db'}", "tenant": tenant, "redis": redis}


@pytest.fixture
def sqlite_place(tmp_path: Path) -> dict[str, Any]:
    return {"url": f"sqlite:///{tmp_path / 'sessions.db'}", "tenant": "shop"}


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    services: list[ThreadkeepSessionService] = []

    def open_(**options: Any) -> ThreadkeepSessionService:
        services.append(ThreadkeepSessionService.from_url(**options))
        return services[-1]

    yield open_
    for service in services:
        await service.close()


@pytest.fixture
def service(place: dict[str, Any], opened: Open) -> ThreadkeepSessionService:
    return opened(**place)


@pytest.fixture
def sqlite_service(sqlite_place: dict[str, Any], opened: Open) -> ThreadkeepSessionService:
    return opened(**sqlite_place)
