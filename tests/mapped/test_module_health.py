"""What the memory module reports of itself: a typo in its settings, turns that wait or are parked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.mapped.conftest import MakeModule
from tests.servers.redis import client
from tests.servers.waiting import wait_until
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep.compat.reflection import MemoryModule
from threadkeep.sessions.redis.turns import DEAD, QUEUE

__all__ = ["threadkeep"]  # the fixture
TYPOS = [
    ({"tabels": {"conversations": "chat_log"}}, "tabels"),
    ({"tables": {"conversation": "chat_log"}}, "tables.conversation"),
    ({"columns_map": {"user_mesage": "said"}}, "columns_map.user_mesage"),
    ({"enabled": "false"}, "enabled"),
]


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(config: dict[str, Any] | str) -> Path:
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return path

    return write


@pytest.mark.parametrize(("config", "named"), [*TYPOS, ("{", "config.json")])
def test_a_typo_in_the_config_is_reported_by_health(config: Any, named: str, written: Any, redis_url: str) -> None:
    module = MemoryModule(written(config), redis_url, "postgresql://nobody@127.0.0.1:1/none")
    found = module.health()
    module.close()
    assert (found["enabled"], found["status"]) == (None, "failed")
    assert named in found["error"]


@pytest.mark.parametrize(("config", "named"), TYPOS)
def test_serve_refuses_to_start_with_a_typo_in_the_config(
    config: Any, named: str, written: Any, threadkeep: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_CONFIG_PATH", str(written(config)))
    ended = threadkeep("serve", "--port", "0", "--url", f"sqlite:///{tmp_path}/memory.db", "--json")
    assert ended.code != 0
    assert named in ended.stderr + ended.stdout
    assert not (tmp_path / "memory.db").exists()


def test_doctor_reports_a_typo_in_the_config(
    written: Any, threadkeep: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_CONFIG_PATH", str(written(TYPOS[0][0])))
    ended = threadkeep("doctor", "--url", f"sqlite:///{tmp_path}/memory.db", "--json")
    assert (ended.code, ended.json["mapped"]["ok"]) == (1, False)
    assert any("tabels" in line for line in ended.json["warnings"])


def test_turns_that_wait_for_too_long_or_are_parked_are_no_good_health(module: MemoryModule, redis_url: str) -> None:
    def is_now(status: str, **redis: Any) -> None:
        def holds() -> bool:  # a store that was slow for once is asked again
            found = module.health()
            return found["status"] == status and redis.items() <= found["redis"].items()

        wait_until(holds, seconds=30, what=f"health is {status}")

    is_now("ok", queued=0, parked=0)
    with client(redis_url) as redis:
        redis.xadd(QUEUE, {"record": "{}"}, id="1000-1")  # since 1970
        is_now("degraded", queued=1, parked=0)
        assert module.health()["redis"]["oldest_seconds"] > 60
        redis.delete(QUEUE)
        is_now("ok", queued=0, parked=0)
        redis.xadd(DEAD, {"record": "{}", "reason": "refused"})
        is_now("degraded", queued=0, parked=1)


MALFORMED = ["a plain text", {"causes": "one"}, {"summary": 5}, {"causes": [{"why": "deep"}]}, [1, 2]]


@pytest.mark.parametrize("reflection", MALFORMED)
def test_a_malformed_reflection_costs_no_turn(
    module: MemoryModule, reflection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    module.store_conversation("c1", "u1", "hello", "hi", reflection)
    assert module.flush_once() == 1
    (turn,) = module.load_long_term("c1")
    assert (turn["user_message"], turn["assistant_message"], turn["reflection"]) == ("hello", "hi", None)
    latest = module.load_recent_context("c1")
    assert latest is not None
    assert (latest["user_msg"], latest["reflection"]) == ("hello", None)
    assert "kept without its reflection" in caplog.text
    module.store_short_term("c2", "u1", "hello", "hi", reflection)
    assert (module.load_recent_context("c2") or {})["user_msg"] == "hello"


async def test_a_malformed_reflection_costs_no_turn_in_a_running_loop(make_module: MakeModule, sql_url: str) -> None:
    module = make_module(sql_url)
    module.store_conversation("c1", "u1", "hello", "hi", "a plain text")  # type: ignore[arg-type]
    assert (await asyncio.to_thread(module.load_recent_context, "c1") or {})["user_msg"] == "hello"
