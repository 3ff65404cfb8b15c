"""Cost of an append and of reading the window as a conversation grows: ours, and the peers' own SQLite sessions."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench.report import mean, median, p95, table
from bench.sessions_measure import Plan, Samples, run_round
from bench.sessions_ours import Threadkeep, ThreadkeepUnredacted
from bench.sessions_peers import Contestant, GoogleADK, LangGraph, OpenAIAgents

ENTRANTS: tuple[Callable[[], Contestant], ...] = (Threadkeep, ThreadkeepUnredacted, OpenAIAgents, GoogleADK, LangGraph)
OURS, UNREDACTED, OPENAI, ADK, _ = (entrant.name for entrant in ENTRANTS)  # type: ignore[attr-defined]
QUICK = Plan(lengths=(10, 50), reads=5, singles=6, turns_per_task=3)

Rounds = list[dict[str, Samples]]  # by name


def main(args: argparse.Namespace) -> dict[str, Any]:
    plan = QUICK if args.quick else Plan()
    rounds = asyncio.run(_rounds(plan, args.rounds or (1 if args.quick else 5)))
    result = summary(rounds, plan)
    if not args.json:
        print(rendered(result))
    return result


async def _rounds(plan: Plan, count: int) -> Rounds:
    rounds: Rounds = []
    for number in range(count):
        print(f"round {number + 1} of {count}", file=sys.stderr)
        contestants = [entrant() for entrant in ENTRANTS]
        samples = await run_round(contestants, plan)
        rounds.append({one.name: its for one, its in zip(contestants, samples, strict=True)})
    return rounds


def summary(rounds: Rounds, plan: Plan) -> dict[str, Any]:
    """Timings over the samples of all rounds; ratios within each round first, then their median."""
    names = list(rounds[0])
    return {
        "bench": "sessions",
        "rounds": len(rounds),
        "lengths": list(plan.lengths),
        "window": plan.window,
        "tasks": plan.tasks,
        "contestants": {name: _figures([one[name] for one in rounds]) for name in names},
        "peer_over_ours": {name: _ratios(rounds, name) for name in names if name != OURS},
        "must_show": _must_show(rounds, plan),
    }


def _figures(rounds: list[Samples]) -> dict[str, Any]:
    lengths = list(rounds[0].append)
    return {
        "durability": rounds[0].durability,
        "append_ms": {str(at): _timing([one.append[at] for one in rounds]) for at in lengths},
        "read_ms": {str(at): _timing([one.read[at] for one in rounds]) for at in lengths},
        "bytes_per_message": {
            str(at): median([size / n for size, n in (r.size[at] for r in rounds)]) for at in lengths
        },
        "added_bytes_per_message": _added(rounds[0].size),
        "single_ms": _timing([one.single for one in rounds]),
        "concurrent_ms": _timing([one.concurrent for one in rounds]),
        "concurrent_turns_per_second": median([one.concurrent_per_second for one in rounds]),
        "stopped_at": lengths[-1],
    }


def _timing(rounds: list[list[float]]) -> dict[str, float]:
    samples = [sample for one in rounds for sample in one]
    return {"median": median(samples), "p95": p95(samples), "mean": mean(samples)}


def _added(sizes: dict[int, tuple[int, int]]) -> dict[str, float]:
    """Bytes per message between one length and the next: flat means linear, whatever the empty file weighs."""
    steps = list(sizes.items())
    return {
        f"{low}-{high}": (more - less) / (longer - shorter)
        for (low, (less, shorter)), (high, (more, longer)) in pairwise(steps)
    }


def _ratios(rounds: Rounds, name: str) -> dict[str, Any]:
    """Above 1: ours is the better one."""
    lengths = list(rounds[0][name].append)

    def of(value: Callable[[Samples], float]) -> float:
        return median([value(one[name]) / value(one[OURS]) for one in rounds])

    return {
        "append": {str(at): of(lambda s, at=at: median(s.append[at])) for at in lengths},
        "read": {str(at): of(lambda s, at=at: median(s.read[at])) for at in lengths},
        "bytes": {str(at): of(lambda s, at=at: s.size[at][0] / s.size[at][1]) for at in lengths},
        "single": of(lambda s: median(s.single)),
        "concurrent": of(lambda s: 1 / s.concurrent_per_second),
    }


def _over(rounds: Rounds, one: str, other: str, at: int) -> float:
    return median([median(its[one].append[at]) / median(its[other].append[at]) for its in rounds])


def _must_show(rounds: Rounds, plan: Plan) -> dict[str, float]:
    longest = plan.lengths[-1]
    base = 100 if 100 in plan.lengths else plan.lengths[0]
    growth = median([median(one[OURS].append[longest]) / median(one[OURS].append[base]) for one in rounds])
    steps = list(_added(rounds[0][OURS].size).values())
    adk, openai = _ratios(rounds, ADK), _ratios(rounds, OPENAI)
    return {
        f"append_growth_{longest}_over_{base}": growth,
        "redaction_off_over_on_per_turn": _ratios(rounds, UNREDACTED)["append"][str(longest)],
        "openai_over_redaction_off_per_turn": _over(rounds, OPENAI, UNREDACTED, longest),
        "adk_over_ours_per_turn": adk["append"][str(longest)],
        "adk_over_ours_per_message": adk["single"],
        "openai_over_ours_per_turn": openai["append"][str(longest)],
        "openai_over_ours_per_message": openai["single"],
        "added_bytes_last_step_over_step_before": steps[-1] / steps[-2] if len(steps) > 1 else 1.0,
    }


def rendered(result: dict[str, Any]) -> str:
    contestants: dict[str, Any] = result["contestants"]
    lengths = [str(length) for length in result["lengths"]]
    blocks = [
        _by_length(
            "append of a turn (two messages), ms: median / p95 / mean", contestants, lengths, "append_ms", _timed
        ),
        _by_length(
            f"read of the newest {result['window']}, ms: median / p95 / mean", contestants, lengths, "read_ms", _timed
        ),
        _by_length("bytes on disk per message", contestants, lengths, "bytes_per_message", lambda value: value),
        _others(result),
        table(
            "peer / ours, per turn (above 1: ours is faster)",
            ("", *(f"{x} at {n}" for x in ("append", "read") for n in lengths)),
            [
                (name, *(r[x].get(n) for x in ("append", "read") for n in lengths))
                for name, r in result["peer_over_ours"].items()
            ],
        ),
        table("must show", ("", "value"), list(result["must_show"].items())),
    ]
    return "\n".join(blocks)


def _by_length(
    title: str, contestants: dict[str, Any], lengths: list[str], key: str, shown: Callable[[Any], Any]
) -> str:
    rows = [(name, *(shown(its[key].get(at)) for at in lengths)) for name, its in contestants.items()]
    return table(title, ("messages in the conversation", *lengths), rows)


def _timed(timing: dict[str, float] | None) -> str | None:
    return f"{timing['median']:.2f} / {timing['p95']:.2f} / {timing['mean']:.2f}" if timing else None


def _others(result: dict[str, Any]) -> str:
    header = (
        "",
        "one message, ms",
        f"{result['tasks']} tasks, ms",
        "turns/s",
        "journal_mode",
        "synchronous",
        "stopped at",
    )
    rows = [
        (
            name,
            _timed(its["single_ms"]),
            _timed(its["concurrent_ms"]),
            its["concurrent_turns_per_second"],
            its["durability"]["journal_mode"],
            its["durability"]["synchronous"],
            str(its["stopped_at"]),
        )
        for name, its in result["contestants"].items()
    ]
    return table("one message per append; several tasks at once; durability", header, rows)
