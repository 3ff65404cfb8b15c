"""What the samples of `sessions` say: figures by contestant, ratios to ours, and what must be shown."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench.report import mean, median, p95, table
from bench.sessions_measure import Plan, Samples

OURS, UNREDACTED = "Threadkeep", "Threadkeep, redaction off"
Rounds = list[dict[str, Samples]]  # by name


def summary(store: str, rounds: Rounds, plan: Plan) -> dict[str, Any]:
    """Timings over the samples of all rounds; ratios within each round first, then their median."""
    names = list(rounds[0])
    return {
        "store": store,
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
        return _over(rounds, name, value)

    return {
        "append": {str(at): of(lambda s, at=at: median(s.append[at])) for at in lengths},
        "read": {str(at): of(lambda s, at=at: median(s.read[at])) for at in lengths},
        "bytes": {str(at): of(lambda s, at=at: s.size[at][0] / s.size[at][1]) for at in lengths},
        "single": of(lambda s: median(s.single)),
        "concurrent": of(lambda s: 1 / s.concurrent_per_second),
    }


def _must_show(rounds: Rounds, plan: Plan) -> dict[str, float]:
    """Growth of ours, and at the length where all still run: append, and append and read together, peer over ours."""
    longest, base = plan.lengths[-1], 100 if 100 in plan.lengths else plan.lengths[0]
    names = list(rounds[0])
    common = max(length for length in plan.lengths if all(length in rounds[0][name].append for name in names))
    growth = median([median(one[OURS].append[longest]) / median(one[OURS].append[base]) for one in rounds])
    steps = list(_added(rounds[0][OURS].size).values())
    reading = median([median(one[OURS].read[longest]) / median(one[OURS].read[base]) for one in rounds])
    shown = {
        f"append at {longest} over append at {base}": growth,
        f"read of the newest at {longest} over at {base}": reading,
    }
    for name in names:
        if name != OURS:
            shown[f"{name}: append at {common}, over ours"] = _over(rounds, name, lambda s: median(s.append[common]))
            shown[f"{name}: append + read at {common}, over ours"] = _over(
                rounds, name, lambda s: median(s.append[common]) + median(s.read[common])
            )
    if len(steps) > 1:
        shown["bytes a message adds, last step over the one before"] = steps[-1] / steps[-2]
    return shown


def _over(rounds: Rounds, name: str, value: Callable[[Samples], float]) -> float:
    return median([value(one[name]) / value(one[OURS]) for one in rounds])


def rendered(store: str, result: dict[str, Any]) -> str:
    contestants: dict[str, Any] = result["contestants"]
    lengths = [str(length) for length in result["lengths"]]
    blocks = [
        _by_length(
            f"{store}: append of a turn (two messages), ms: median / p95 / mean",
            contestants,
            lengths,
            "append_ms",
            _timed,
        ),
        _by_length(
            f"read of the newest {result['window']}, ms: median / p95 / mean", contestants, lengths, "read_ms", _timed
        ),
        _by_length("bytes at rest per message", contestants, lengths, "bytes_per_message", lambda value: value),
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
        "durability",
        "stopped at",
    )
    rows = [
        (
            name,
            _timed(its["single_ms"]),
            _timed(its["concurrent_ms"]),
            its["concurrent_turns_per_second"],
            ", ".join(f"{name} {value}" for name, value in its["durability"].items()),
            str(its["stopped_at"]),
        )
        for name, its in result["contestants"].items()
    ]
    return table("one message per append; several tasks at once; durability", header, rows)
