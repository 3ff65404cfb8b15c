"""What a command prints: for people, tables on stdout; with `--json`, one JSON value on stdout and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

# Progress and questions go here, so that stdout stays clean for a pipe.
notes = Console(stderr=True)


def screen() -> Console:
    """What is printed is data, not markup: `[bold]` in a message or a path stays as it is."""
    return Console(markup=False, highlight=False)


def print_json(value: Any) -> None:
    """ASCII only: it passes through any terminal or pipe, and lone surrogates survive it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in pairs.items():
        table.add_row(name, "–" if value is None else str(value))
    screen().print(table)
