"""What a command prints: for people, tables on stdout; with `--json`, one JSON value on stdout and nothing else."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

# Progress and questions go here, so that stdout stays clean for a pipe.
notes = Console(stderr=True)
# All but newlines and tabs: a terminal obeys them, and they may have come with anybody's words.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def screen() -> Console:
    """What is printed is data, not markup: `[bold]` in a message or a path stays as it is."""
    return Console(markup=False, highlight=False)


def harmless(text: str) -> str:
    """What others have said, for a terminal: control characters are shown (`\\x1b`), not sent, and halves of characters
    too."""
    shown = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()


def print_json(value: Any) -> None:
    """ASCII only: it passes through any terminal or pipe, and lone surrogates survive it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def in_columns(title: str, *headings: str) -> Table:
    """Nothing is left out in a narrow window: the first column, by which other commands name a row, stays whole, the
    others are folded."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading == headings[0])
    return table


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    table = in_columns(title, "name", "value")
    table.show_header = False
    for name, value in pairs.items():
        table.add_row(name, "–" if value is None else str(value))
    screen().print(table)
