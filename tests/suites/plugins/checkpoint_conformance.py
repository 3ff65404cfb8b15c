"""LangGraph's conformance suite as the checkout has it, on our saver: one case for each of its capabilities.

A file of tests that the runner copies away from ours: the suite must come from the checkout.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from threadkeep.adapters.langgraph import ThreadkeepSaver

URL = os.environ["SUITE_URL"]


@checkpointer_test(name="ThreadkeepSaver")
async def opened() -> AsyncGenerator[ThreadkeepSaver]:
    async with ThreadkeepSaver.from_url(URL, user=f"u-{secrets.token_hex(8)}") as saver:
        yield saver


@pytest.mark.parametrize("capability", [str(one.value) for one in Capability])
async def test_capability(capability: str) -> None:
    result = (await validate(opened, capabilities={capability})).results[capability]
    assert (result.detected, result.failures) == (True, [])
    assert result.tests_passed > 0
