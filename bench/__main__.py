"""`python -m bench NAME [--json] [--data DIR]`; `all` runs every benchmark in turn."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

# Each is a module of this package with `main(args) -> dict` that prints its own table.
NAMES = (
    "sessions",
    "language",
    "tokens",
    "normalise",
    "recall",
    "recall_latency",
    "retrieval",
    "followups",
    "assistants",
    "summary",
    "redaction",
    "timeouts",
    "checkpoints",
    "service",
)


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    if args.name != "all" and args.name not in NAMES:
        print(f"no benchmark is called {args.name!r}; there are: {', '.join((*NAMES, 'all'))}", file=sys.stderr)
        return 2
    names = NAMES if args.name == "all" else (args.name,)
    results: dict[str, Any] = {name: importlib.import_module(f"bench.{name}").main(args) for name in names}
    if args.json:
        print(json.dumps(results if args.name == "all" else results[args.name], indent=2))
    return 0


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", help=f"one of {', '.join(NAMES)}, or all")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead of a table")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the open data sets")
    parser.add_argument("--quick", action="store_true", help="a few seconds of it, to see that it runs")
    parser.add_argument("--rounds", type=int, default=None, help="how often to repeat (each benchmark has a default)")
    parser.add_argument("--sets", default=None, help="recall: only sets whose names hold one of these, by commas")
    parser.add_argument("--set", default=None, choices=("held-back",), help="redaction: only this set, ours alone")
    parser.add_argument("--list", action="store_true", help="redaction --set, followups: list what went wrong")
    parser.add_argument("--tell-language", action="store_true", help="redaction --set: pass the set's language along")
    parser.add_argument(
        "--store", default="all", choices=("sqlite", "redis", "postgres", "mariadb", "adk", "adk-redis", "all")
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
