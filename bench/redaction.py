"""Redaction: ours beside Presidio, scrubadub, detect-secrets and two plain expressions, on the same texts.

Quality per type and language, leak (gold that no mask covers), false alarms on numbers and lines nobody needs to hide,
megabytes a second of processor time on chat turns, memory, load time, and how the cost grows on hostile texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from bench import redaction_held_back
from bench.redaction_engines import ENGINES
from bench.redaction_growth import BOUND
from bench.redaction_worker import COMPLETED

if TYPE_CHECKING:
    import argparse


QUICK = ("threadkeep", "seed regexes", "detect-secrets")
"""Those that load in a moment: `--quick` only shows that the benchmark runs."""


def main(args: argparse.Namespace) -> dict[str, Any]:
    if args.set == "held-back":
        return redaction_held_back.main(args)
    names = (*(QUICK if args.quick else ENGINES), "growth")
    with ThreadPoolExecutor(3 if args.quick else 1) as pool:  # side by side only where no figure is meant
        results = dict(zip(names, pool.map(lambda name: _run(name, args), names), strict=True))
    growth = results.pop("growth")
    engines = results
    result = {"engines": engines, "growth": growth}
    if not args.json:
        _print_quality(engines)
        _print_costs(engines)
        _print_alarms(engines)
        _print_growth(result["growth"])
    return result


def _run(name: str, args: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.redaction_worker", name, "--data", str(args.data)]
    if getattr(args, "quick", False):
        command.append("--quick")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} could not be measured:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def _print_quality(engines: dict[str, Any]) -> None:
    """Slow peers are given a sample of each set, drawn at random; `cases` says how many of it."""
    rows = engines["threadkeep"]["altered"]
    for title, ours in engines["threadkeep"]["sets"].items():
        print(f"\n{title}: precision / recall / F1, leak")
        print(f"  {'':16}" + "".join(f"{name:>32}" for name in engines))
        for kind in ours["types"]:
            cells = [_cell(engines[name]["sets"][title]["types"].get(kind)) for name in engines]
            print(f"  {kind:16}" + "".join(f"{cell:>32}" for cell in cells))
        print("  cases: " + ", ".join(f"{name} {one['sets'][title]['cases']}" for name, one in engines.items()))
        if title == COMPLETED:
            print(
                f"  with gold for the addresses of {len(rows)} rows whose e-mail field the paragraph writes otherwise,"
            )
            print(f"  so that they have none as given: rows {', '.join(map(str, rows))}")


def _cell(one: dict[str, float] | None) -> str:
    if one is None:
        return "-"
    return f"{one['precision']:.3f}/{one['recall']:.3f}/{one['f1']:.3f}, {one['leak']:.3f} of {one['gold']}"


def _print_costs(engines: dict[str, Any]) -> None:
    print("\nchat turns; `ours is` compares passes over the same turns in one process")
    print(f"{'':20}{'MB/s':>10}{'ours is':>10}{'load s':>10}{'RSS MB':>10}{'after':>10}")
    for name, one in engines.items():
        times = f"{one['ours_mb_per_s'] / one['mb_per_s']:.1f}×"
        print(
            f"{name:20}{one['mb_per_s']:>10}{times:>10}{one['load_s']:>10}{one['rss_mb']:>10}{one['rss_after_mb']:>10}"
        )


def _print_alarms(engines: dict[str, Any]) -> None:
    print("\nfalse alarms on structured types")
    groups = engines["threadkeep"]["innocent_numbers"]
    print(f"  {'':24}" + "".join(f"{name:>20}" for name in engines))
    for group in groups:
        counts = "".join(f"{len(engines[name]['innocent_numbers'][group]):>20}" for name in engines)
        print(f"  {group:24}{counts}")
    rates = "".join(f"{engines[name]['innocent_lines']['per_1000']:>20}" for name in engines)
    print(f"  {'per 1,000 innocent lines':24}{rates}")
    for alarm in [
        *engines["threadkeep"]["innocent_lines"]["listed"],
        *(alarm for alarms in groups.values() for alarm in alarms),
    ]:
        print(f"  ours: {alarm}")


def _print_growth(growth: dict[str, Any]) -> None:
    print("\nhostile texts: seconds for each at full length, and how many times those at half of it")
    for name, one in growth["texts"].items():
        print(f"  {name:32} {one['seconds']:>8.3f} s  × {one['ratio']:.2f}")
    print("\neach rule on the hostile text that is worst for it")
    for name, one in growth["rules"].items():
        print(f"  {name:24} {one['text']:32} {one['seconds']:>8.3f} s  × {one['ratio']:.2f}")
    for what in ("texts", "rules"):
        name, worst = max(growth[what].items(), key=lambda item: item[1]["ratio"])
        print(f"worst of the {what}: {name} × {worst['ratio']:.2f} (bound {BOUND})")
    print(f"rules that no hostile text reaches: {', '.join(growth['unreached']) or 'none'}")
