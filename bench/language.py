"""Telling languages apart: ours beside lingua, pycld2 and py3langid on the same lines, each in its own process."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.language_peers import PEERS
from bench.report import table

OURS = "Threadkeep"
SCRIPTLESS = ("lingua", "py3langid")  # they call both scripts of Chinese "zh"
OPEN_DATA = Path(__file__).parents[2] / "shared" / "data"


def main(args: argparse.Namespace) -> dict[str, Any]:
    data = Path(args.data or OPEN_DATA)
    most = 60 if getattr(args, "quick", False) else 0
    contestants = {name: _measured(name, data, most) for name in PEERS}
    result = {"bench": "language", "contestants": contestants, "must_show": _must_show(contestants[OURS])}
    if not args.json:
        print(rendered(result))
    return result


def _measured(name: str, data: Path, most: int) -> dict[str, Any]:
    print(f"measuring {name}", file=sys.stderr)
    command = [sys.executable, "-m", "bench.language_measure", name, str(data), str(most)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    return json.loads(done.stdout)


def _of(contestant: dict[str, Any], name: str) -> dict[str, float]:
    return {row["language"]: row["accuracy"] for row in contestant["sets"] if row["set"] == name}


def _must_show(ours: dict[str, Any]) -> list[dict[str, Any]]:
    plain, scripts = _of(ours, "sentences, no diacritics"), _of(ours, "Hant or Hans")
    figures = [
        ("single words, macro", fmean(_of(ours, "single-words").values()), 0.90),
        ("word pairs, macro", fmean(_of(ours, "word-pairs").values()), 0.95),
        ("sentences, macro", fmean(_of(ours, "sentences").values()), 0.99),
        ("sentences, no diacritics, vi", plain["vi"], 0.90),
        ("sentences, no diacritics, pl", plain["pl"], 0.99),
        ("Hant from Hans", min(scripts.values()), 0.98),
    ]
    costs = [("load, seconds", ours["load_seconds"], 0.5), ("RSS added, MB", ours["rss_mb"], 60.0)]
    return [{"what": w, "value": v, "at_least": limit, "met": v >= limit} for w, v, limit in figures] + [
        {"what": w, "value": v, "at_most": limit, "met": v <= limit} for w, v, limit in costs
    ]


def rendered(result: dict[str, Any]) -> str:
    contestants = result["contestants"]
    names = list(contestants)
    title = "Right answers; the four languages are allowed where a detector can be told so"
    return "\n".join(
        (
            table(title, ["set", "lines", *names], _accuracies(contestants)),
            table("Cost", ["", *names], _costs(contestants)),
            table("Ours must show", ["", "value", "limit", "met"], [_shown(row) for row in result["must_show"]]),
        )
    )


def _accuracies(contestants: dict[str, Any]) -> list[list[Any]]:
    return [
        [f"{row['set']}, {row['language']}", row["texts"]]
        + [_share(its["sets"][place], name) for name, its in contestants.items()]
        for place, row in enumerate(contestants[OURS]["sets"])
    ]


def _costs(contestants: dict[str, Any]) -> list[list[Any]]:
    timed = [
        [f"a call on {kind}, µs", *(fmean(_times(its, kind)) for its in contestants.values())]
        for kind in ("single-words", "sentences")
    ]
    return [
        ["load, ms", *(its["load_seconds"] * 1e3 for its in contestants.values())],
        ["RSS added, MB", *(its["rss_mb"] for its in contestants.values())],
        *timed,
    ]


def _shown(row: dict[str, Any]) -> list[str]:
    limit = f"≥ {row['at_least']}" if "at_least" in row else f"≤ {row['at_most']}"
    return [row["what"], f"{row['value']:.3f}", limit, "yes" if row["met"] else "NO"]


def _share(row: dict[str, Any], name: str) -> str | None:
    return None if row["set"] == "Hant or Hans" and name in SCRIPTLESS else f"{row['accuracy']:.3f}"


def _times(contestant: dict[str, Any], kind: str) -> list[float]:
    return [row["microseconds"] for row in contestant["sets"] if row["set"] == kind]
