"""Measures one engine in a process of its own, so that load time and memory are its own: prints one JSON object."""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from bench.redaction_engines import ENGINES, Find
from bench.redaction_innocent import INNOCENT
from bench.redaction_score import score
from bench.redaction_secrets import secrets
from bench.redaction_sets import Case, altered, completed, innocent_lines, multipriv, synth, templates

SLOW = {
    "presidio patterns": 200,
    "presidio analyzer": 200,
    "presidio + spaCy": 100,
    "scrubadub": 200,
    "detect-secrets": 200,
}
"""How many cases of a set the slow peers are given, drawn at random: the figures settle long before."""
SOFT = {"NAME", "ADDRESS", "LOCATION", "ORGANIZATION", "DATE_TIME", "NRP", "URL", "PERSON"}
COMPLETED = "multipriv en, completed"
TEST_DATA = Path(__file__).parents[1] / "tests" / "data"


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, data: Path, quick: bool) -> dict[str, Any]:
    base, started = memory_mb(), time.perf_counter()
    find = ENGINES[name]()
    find("Call Ann on +48 601 234 567 or ann@example.org, PESEL 44051401458", "en")
    loaded = time.perf_counter() - started
    limit = 6 if quick else SLOW.get(name)
    result: dict[str, Any] = {"load_s": round(loaded, 3), "rss_mb": round(memory_mb() - base, 1)}
    result["sets"] = {title: _quality(_some(cases, limit), find) for title, cases in _sets(data).items()}
    result["altered"] = altered(data, "en")
    result["innocent_numbers"] = _innocent_numbers(find)
    result["innocent_lines"] = _innocent_lines(find, data, limit)
    result["rss_after_mb"] = round(memory_mb() - base, 1)
    result |= _speed(find, data, 0.05 if quick else 2.0)
    return result


def _sets(data: Path) -> dict[str, list[Case]]:
    return {
        "synth en": synth(data),
        "multipriv en": multipriv(data, "en"),
        COMPLETED: completed(data, "en"),
        "multipriv zh": multipriv(data, "zh"),
        "templates vi": templates(TEST_DATA, "vi"),
        "templates pl": templates(TEST_DATA, "pl"),
        "secrets": secrets(),
    }


def _some(cases: list[Case], limit: int | None) -> list[Case]:
    shuffled = random.Random(11).sample(cases, len(cases))
    return shuffled[:limit]


def _quality(cases: list[Case], find: Find) -> dict[str, Any]:
    tallies = score(cases, find)
    return {"cases": len(cases), "types": {kind: one.figures() for kind, one in sorted(tallies.items()) if one.gold}}


def _innocent_numbers(find: Find) -> dict[str, list[str]]:
    return {
        group: [f"{text} → {kind}" for text in texts for _, _, kind in find(text, "en") if kind not in SOFT]
        for group, texts in INNOCENT.items()
    }


def _innocent_lines(find: Find, data: Path, limit: int | None) -> dict[str, Any]:
    lines = innocent_lines(data)
    lines = random.Random(5).sample(lines, min(limit or len(lines), len(lines)))
    alarms = [
        f"{source}: {kind}: {line[max(0, start - 25) : start]}⟦{line[start:end]}⟧"
        for source, language, line in lines
        for start, end, kind in find(line, language)
        if kind not in SOFT
    ]
    return {"lines": len(lines), "per_1000": round(1000 * len(alarms) / len(lines), 2), "listed": alarms[:40]}


def _speed(find: Find, data: Path, seconds: float) -> dict[str, float]:
    """Processor time on chat turns, as many as fit in the time: the best of three passes; and ours on the same turns,
    pass by pass in the same process, so that what slows the machine slows both. Each pass is over all of them: ours,
    taken up again after every hundred, would do little but find its way back into the processor's caches."""
    turns = [line for source, _, line in innocent_lines(data, 15_000) if source == "locomo"]
    ours = ENGINES["threadkeep"]()
    chosen: list[str] = []
    spent = 0.0
    for start in range(0, len(turns), 100):
        chosen += turns[start : start + 100]
        spent += _pass(find, turns[start : start + 100])
        if spent > seconds:
            break
    passes = [(_pass(find, chosen), _pass(ours, chosen)) for _ in range(1 if seconds < 1 else 3)]
    megabytes = sum(len(turn.encode()) for turn in chosen) / 1e6
    theirs, own = (min(one[which] for one in passes) for which in (0, 1))
    return {"mb_per_s": round(megabytes / theirs, 4), "ours_mb_per_s": round(megabytes / own, 4)}


def _pass(find: Find, turns: list[str]) -> float:
    started = time.process_time()
    for turn in turns:
        find(turn, "en")
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=[*ENGINES, "growth"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.engine == "growth":
        from bench.redaction_growth import growth  # it loads ours, whose load time and memory are measured above

        json.dump(growth(2_000 if args.quick else 500_000), sys.stdout)
    else:
        json.dump(measure(args.engine, args.data, args.quick), sys.stdout)


if __name__ == "__main__":
    main()
