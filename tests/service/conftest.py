"""The application without a socket (`client`), and as a process of its own (`service`)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.agent.running_hotel import hotel
from tests.service.running import RunningService
from tests.service.scripted import Scripts
from tests.service.stores import on_mariadb, on_postgres
from threadkeep.http.app import create_app
from threadkeep.settings import Settings

__all__ = ["hotel", "on_mariadb", "on_postgres"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many requests were made from the OpenAPI document; what a test counted stands in the report of its end."""
    ends = [dict(report.user_properties) for report in terminalreporter.getreports("")]
    requests = sum(int(str(one["requests"])) for one in ends if "requests" in one)
    if requests:
        terminalreporter.write_line(f"requests made from the OpenAPI document: {requests:,}")


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            yield client


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def client(database: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(Settings(DATABASE_URL=f"sqlite:///{database}"))) as client:
        yield client


@pytest.fixture
def scripts() -> Scripts:
    return Scripts()


@pytest.fixture
async def talking(database: Path, scripts: Scripts) -> AsyncIterator[httpx.AsyncClient]:
    """With somebody who answers."""
    settings = Settings(DATABASE_URL=f"sqlite:///{database}")
    async with client_of(create_app(settings, responder_opener=scripts.opener)) as client:
        yield client


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    with RunningService(tmp_path, f"sqlite:///{tmp_path}/memory.db") as running:
        yield running
