"""LangGraph's own conformance suite, every capability by name: it calls a saver full that lacks some."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport

from tests.servers.server import Server
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.settings import Settings

CAPABILITIES = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


async def report_on(url: str) -> CapabilityReport:
    @checkpointer_test(name="ThreadkeepSaver")
    async def opened() -> AsyncGenerator[ThreadkeepSaver]:
        async with ThreadkeepSaver.from_url(url, user=f"u-{uuid4()}", settings=Settings()) as saver:
            yield saver

    return await validate(opened)


async def test_every_capability_passes_by_name(url: str) -> None:
    results = (await report_on(url)).results
    assert {name: result.failures for name, result in results.items()} == {name: [] for name in CAPABILITIES}
    assert all(result.detected and result.passed for result in results.values())
    assert {name: result.tests_passed for name, result in results.items()} == pytest.approx(CAPABILITIES)


@pytest.mark.server("pgbouncer")
async def test_every_capability_passes_behind_a_transaction_pooler(pgbouncer_server: Server) -> None:
    results = (await report_on(f"{pgbouncer_server.url}?pooler=transaction")).results
    assert {name: result.failures for name, result in results.items()} == {name: [] for name in CAPABILITIES}
