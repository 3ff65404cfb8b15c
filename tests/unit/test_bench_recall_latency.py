"""`bench recall_latency` runs and tells what it promises; no timing is asserted."""

from __future__ import annotations

import json

from tests.unit.test_bench import run_bench


def test_each_size_is_told_with_and_without_vectors_and_how_soon_a_turn_is_found() -> None:
    done = run_bench("recall_latency", "--quick", "--store", "sqlite", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(one["turns"], one["vectors"]) for one in told["recall"]] == [
        (turns, vectors) for turns in (1, 10, 100) for vectors in (False, True)
    ]
    assert all(one["p95_ms"] >= one["p50_ms"] > 0 for one in told["recall"])
    assert all(one["bytes_per_turn"] > 0 for one in told["recall"])
    assert told["write_to_readable_ms"]["sqlite"]["status"] == ["stored"]
