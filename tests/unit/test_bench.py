"""The benchmarks run and say what they promise to say. No timing is asserted: that is what the benchmarks are for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.report import p95, table

ROOT = Path(__file__).resolve().parents[2]
CONTESTANTS = {
    "Threadkeep",
    "Threadkeep, redaction off",
    "OpenAI Agents SQLiteSession",
    "Google ADK SqliteSessionService",
    "LangGraph SqliteSaver",
}


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def sessions() -> dict[str, Any]:
    return sessions_on("sqlite")


def sessions_on(store: str) -> dict[str, Any]:
    done = run_bench("sessions", "--store", store, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["stores"][store]


def test_an_unknown_benchmark_is_refused_with_the_names_there_are() -> None:
    done = run_bench("speed")
    assert done.returncode == 2
    assert "speed" in done.stderr
    assert "sessions" in done.stderr


@pytest.mark.slow
def test_sessions_measures_every_contestant_at_every_length(sessions: dict[str, Any]) -> None:
    assert set(sessions["contestants"]) == CONTESTANTS
    for its in sessions["contestants"].values():
        for key in ("append_ms", "read_ms", "bytes_per_message"):
            assert list(its[key]) == ["10", "50"]
        for timing in (*its["append_ms"].values(), *its["read_ms"].values(), its["single_ms"], its["concurrent_ms"]):
            assert 0 < timing["median"] <= timing["p95"]
        assert all(size > 400 for size in its["bytes_per_message"].values())  # no store is smaller than the text
        assert its["concurrent_turns_per_second"] > 0


@pytest.mark.slow
def test_sessions_says_how_durable_each_contestant_is(sessions: dict[str, Any]) -> None:
    ours = sessions["contestants"]["Threadkeep"]["durability"]
    assert ours == {"journal_mode": "wal", "synchronous": "FULL"}
    for its in sessions["contestants"].values():
        assert its["durability"]["synchronous"] in {"OFF", "NORMAL", "FULL", "EXTRA"}


@pytest.mark.slow
def test_sessions_compares_every_contestant_with_ours(sessions: dict[str, Any]) -> None:
    assert set(sessions["peer_over_ours"]) == CONTESTANTS - {"Threadkeep"}
    for ratios in sessions["peer_over_ours"].values():
        assert set(ratios) == {"append", "read", "bytes", "single", "concurrent"}
    assert all(value > 0 for value in sessions["must_show"].values())


SERVERS = {
    "redis": {
        "OpenAI Agents RedisSession",
        "OpenAI Agents RedisSession, ttl",
        "OpenAI Agents RedisSession, as Runner reads",
        "Google ADK RedisSessionService",
        "LangChain RedisChatMessageHistory",
    },
    "postgres": {"OpenAI Agents SQLAlchemySession", "Google ADK DatabaseSessionService"},
    "mariadb": {"Google ADK DatabaseSessionService"},
}


@pytest.mark.slow
@pytest.mark.parametrize("store", [pytest.param(name, marks=pytest.mark.server(name)) for name in SERVERS])
def test_sessions_measures_ours_and_the_peers_on_every_server(store: str) -> None:
    found = sessions_on(store)
    assert set(found["contestants"]) == {"Threadkeep", "Threadkeep, redaction off"} | SERVERS[store]
    durability = [its["durability"] for its in found["contestants"].values()]
    assert durability[0]
    assert all(one == durability[0] for one in durability)
    assert all(value > 0 for value in found["must_show"].values())
    assert any("append + read" in what for what in found["must_show"])


@pytest.mark.slow
@pytest.mark.server("redis")
@pytest.mark.server("postgres")
def test_timeouts_meets_every_fault_with_every_verb() -> None:
    done = run_bench("timeouts", "--store", "postgres", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)["calls"]
    assert {(one["stores"], one["fault_before"]) for one in calls} == {
        ("postgres", "database"),
        ("redis + postgres", "redis"),
    }
    assert {one["verb"] for one in calls} == {"append", "history", "recall", "touch", "conversations", "erase"}
    while_redis_is_away = [one["answered"] for one in calls if one["fault_before"] == "redis"]
    assert while_redis_is_away == [1.0] * 6


def test_a_table_shows_a_dash_where_there_is_no_figure() -> None:
    assert "–" in table("title", ("name", "ms"), [("one", 1.5), ("two", None)]).splitlines()[-1]


def test_p95_is_a_value_that_was_measured() -> None:
    assert p95([float(n) for n in range(1, 101)]) == 95
    assert p95([3.0]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "store", ["sqlite", *(pytest.param(name, marks=pytest.mark.server(name)) for name in ("postgres", "mariadb"))]
)
def test_checkpoints_measures_ours_and_the_peer_early_and_late(store: str) -> None:
    done = run_bench("checkpoints", "--quick", "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["databases"][store]
    assert {"Threadkeep", told["peer"]} == {*told["contestants"]}
    for its in told["contestants"].values():
        assert all(its["ms"][verb][stage] > 0 for verb in its["ms"] for stage in ("early", "late"))
        assert its["bytes_on_disk"] > 0
    assert told["must_show"]["bytes_of_last_turn_over_early"] < 1.2
    assert told["must_show"]["peer_over_ours_bytes_total"] > 1


@pytest.mark.slow
def test_service_asks_ours_the_peer_and_one_without_memory() -> None:
    done = run_bench("service", "--quick", "--json", "--store", "sqlite")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["stores"]["sqlite"]
    asked = {(one["service"], one["route"]) for one in told["figures"]}
    routes = {"/agent/chat", "/v1/memory/append", "/v1/memory/history"}
    others = ("assistant", "openai runner", "without memory", "fastapi")
    assert asked == {(name, route) for name in ("threadkeep", "openai") for route in routes} | {
        (name, "/agent/chat") for name in others
    }
    assert all(one["cpu_ms"] > 0 for one in told["figures"])
    assert all(0 < one["p50"] <= one["p95"] <= one["p99"] for one in told["figures"])
    assert all(size > 10 for size in told["rss_mb"].values())


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT.parent / "shared/data/cast").is_dir(), reason="the open data sets are not here")
def test_retrieval_asks_follow_ups_a_long_thread_and_many_clients() -> None:
    done = run_bench("retrieval", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert all(0 < told["load"][clients]["p50_ms"] <= told["load"][clients]["p95_ms"] for clients in ("8", "64"))
    assert told["thread"]
    assert told["follow_ups"]
