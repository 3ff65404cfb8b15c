"""What `bench service` makes of its samples, and how it shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.report import Cell, median, p95, table
from bench.service_load import Measured

NAMES = ("per_second", "p50", "p95", "p99", "cpu_ms")
CHAT = "/agent/chat"


def figures_of(found: Mapping[tuple[str, str, str], Sequence[Measured]]) -> list[dict[str, Any]]:
    """Of each round, and then the middle one: a round that was disturbed does not count. Of processor time the least:
    a busy machine can only add to it."""
    return [
        {
            "service": service,
            "route": route,
            "load": load,
            "per_second": median([one.per_second for one in rounds]),
            "p50": median([median(one.answers) for one in rounds]),
            "p95": median([p95(one.answers) for one in rounds]),
            "p99": median([_p99(one.answers) for one in rounds]),
            "cpu_ms": min(one.cpu_ms for one in rounds),
        }
        for (service, route, load), rounds in found.items()
    ]


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-99 * len(values) // 100) - 1)]


def print_figures(store: str, result: dict[str, Any]) -> None:
    loads: list[str] = result["loads"]
    ordered = sorted(result["figures"], key=lambda one: (one["route"], loads.index(one["load"])))
    rows: list[list[Cell]] = [
        [f"{one['route']}, {one['load']}: {one['service']}", *(one[name] for name in NAMES)] for one in ordered
    ]
    header = ("", "per second", "p50 ms", "p95 ms", "p99 ms", "cpu ms")
    print(table(f"{store}: requests a second, waiting and processor time of the service's process", header, rows))
    print(table("resident memory, MB", ("", "MB"), [[name, mb] for name, mb in result["rss_mb"].items()]))
    print(table("must show", ("", "value"), [[name, value] for name, value in shown(result).items()]))


def shown(result: dict[str, Any]) -> dict[str, float]:
    """What memory adds to a turn, by saturated clients, by clients that pause and at a rate that all can serve; and the
    peers beside ours."""
    at = {(one["service"], one["load"]): one for one in result["figures"] if one["route"] == CHAT}
    *_, middle, most, pausing, rate = result["loads"]
    told: dict[str, float] = {}
    for load in (middle, pausing, rate):
        added = at["threadkeep", load]["p50"] - at["without memory", load]["p50"]
        told[f"ms that memory adds to a turn, p50, {load}"] = added
    for ours, peer in (("threadkeep", "openai"), ("assistant", "openai runner"), ("threadkeep", "openai runner")):
        for load in (most, rate):
            told[f"p95 of {peer} over {ours}, {load}"] = at[peer, load]["p95"] / at[ours, load]["p95"]
    told["processor time of openai over threadkeep, a turn"] = (
        at["openai", middle]["cpu_ms"] / at["threadkeep", middle]["cpu_ms"]
    )
    return told
