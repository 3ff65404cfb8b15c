"""What a command writes: tables for people, with `--json` one JSON value on stdout and nothing else, its log on stderr.

Standard output and error are taken as a command finds them: in any encoding, full, or closed. The log is JSON Lines;
exceptions are named, their messages left out. An entry that is written while a request is answered has its
`request_id` and its `conversation_id`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.table import Table

from threadkeep.compose.service import authentication_is_configured
from threadkeep.errors import InvalidInput
from threadkeep.identity.audit import ids_of_this_request
from threadkeep.settings import Settings

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


def confirm(question: str, *, as_json: bool) -> None:
    """Raise `InvalidInput` with `--json`, where nobody reads a prompt, and `Abort` for a no."""
    if as_json:
        raise InvalidInput("--yes", "is missing", "with --json there is no prompt: confirm with --yes")
    typer.confirm(question, abort=True, err=True)


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    table = in_columns(title, "name", "value")
    table.show_header = False
    for name, value in pairs.items():
        table.add_row(name, "–" if value is None else str(value))
    screen().print(table)


def ready_streams() -> None:
    """What the terminal's encoding lacks is shown as `?`; a stream that was closed refuses what is written to it."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # so after `>&-`
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")


def give_up_stdout() -> None:
    """What could not be written is let go: Python would try again at its end, and complain on its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
        sys.stdout.flush()
    os.close(nowhere)


LAG = "threadkeep.lag"
_STRUCTURED = ("threadkeep.http", "threadkeep.mcp", "threadkeep.intent", LAG)  # what they log is JSON already


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name == "threadkeep.outward":
            return record.getMessage()
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        line |= ids_of_this_request()
        if record.name in _STRUCTURED:
            return json.dumps(line | json.loads(record.getMessage()))
        line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__qualname__
        return json.dumps(line)


def log_authentication(settings: Settings) -> None:
    """Log whether callers need a credential; as a warning when they do not."""
    required = authentication_is_configured(settings)
    line = {"event": "starting", "authentication": "required" if required else "none"}
    level = logging.INFO if required else logging.WARNING
    logging.getLogger("threadkeep.http").log(level, json.dumps(line))


def log_to(stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("threadkeep").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
