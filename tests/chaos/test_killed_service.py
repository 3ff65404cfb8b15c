"""`kill -9` on the service, over HTTP: writers retry with their key, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.chaos.harness import PATIENT_WITH_REDIS, Chaos, acknowledged, first_line, kill, process, sized, until
from tests.chaos.writing import Append, Work, write
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer
from threadkeep.errors import OutcomeUnknown


def appending_over_http(client: httpx.AsyncClient) -> Append:
    async def append(conversation: str, turn: str, key: str) -> tuple[int, list[str]]:
        body: dict[str, Any] = {
            "scope": {"user": "chaos", "conversation": conversation},
            "events": [
                {"kind": "UserMessage", "text": f"{turn} 0"},
                {"kind": "ModelResponse", "text": f"{turn} 1"},
            ],
        }
        try:
            answer = await client.post("/v1/memory/append", json=body, headers={"Idempotency-Key": key})
        except httpx.TransportError as error:
            raise OutcomeUnknown("the service broke off") from error
        if answer.status_code >= 500:
            raise OutcomeUnknown(f"the service answered {answer.status_code}")
        receipt = answer.raise_for_status().json()
        return receipt["seq"], receipt["kept"]

    return append


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(3_600)
async def test_a_service_that_is_killed_again_and_again_keeps_every_turn_it_acknowledged(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis, kills, port = new_redis(), sized(2, 50), free_port()
    work = Work(chaos.folder, "w", writers=8, turns=sized(20, 1_000))
    serve = ("threadkeep.cli", "serve", "--json", "--port", str(port), "--url", chaos.url, "--redis", redis.url)
    address = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
        writing = asyncio.create_task(write(appending_over_http(client), work))
        for number in range(kills):
            with process(*serve, **PATIENT_WITH_REDIS) as victim:
                assert json.loads(await asyncio.to_thread(first_line, victim))["url"]
                due = work.writers * work.turns * (number + 1) // (kills + 1)
                await until(lambda due=due: acknowledged(chaos.folder) >= due, seconds=120, what=f"{due} turns")
                kill(victim)
        with process(*serve, **PATIENT_WITH_REDIS) as last:
            await asyncio.to_thread(first_line, last)
            await writing
    async with chaos.memory(redis.url) as memory:
        await memory.flushed(timeout=30)
    verdict = await chaos.assert_right()
    assert verdict.stored == 2 * work.writers * work.turns
