"""A pytest plugin: ADK's own session tests ask for one of its services and get ours, on the store they are told of."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from threadkeep.adapters.adk import ThreadkeepSessionService

URL, REDIS = os.environ["SUITE_URL"], os.environ.get("SUITE_REDIS")
_opened: list[ThreadkeepSessionService] = []


def opened(*arguments: object, **options: object) -> ThreadkeepSessionService:
    """Whatever was asked for: a tenant of its own on the store, as ADK's in-memory services each have one."""
    _opened.append(ThreadkeepSessionService.from_url(URL, redis=REDIS, tenant=f"t-{uuid.uuid4()}"))
    return _opened[-1]


class Ours:
    """Stands for a service of ADK's, also where a test asks whether it has one of those to close."""

    def __new__(cls, *arguments: object, **options: object) -> Any:
        return opened()


@pytest.fixture
async def session_service() -> ThreadkeepSessionService:
    return opened()


@pytest.fixture(autouse=True)
async def _closed_at_the_end(record_property: Any) -> AsyncIterator[None]:
    _opened.clear()
    yield
    record_property("ours", len(_opened))
    for service in _opened:
        await service.close()


class Redirected(pytest.Module):
    def _getobj(self) -> Any:
        module = super()._getobj()
        module.session_service, module.get_session_service = session_service, opened
        for name in ("InMemorySessionService", "DatabaseSessionService", "SqliteSessionService"):
            setattr(module, name, Ours)
        return module


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module:
    return Redirected.from_parent(parent, path=module_path)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that brings an instance of ADK's own along as `session_service` gets ours in its place."""
    metafunc.definition.own_markers[:] = [
        mark
        for mark in metafunc.definition.own_markers
        if not (mark.name == "parametrize" and mark.args[0] == "session_service")
    ]
