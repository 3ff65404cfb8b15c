"""Where in a file something went wrong, so that whoever wrote it finds the line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from threadkeep.errors import InvalidAssistant

_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def refused(path: Path, line: int | None, problem: str, fix: str) -> InvalidAssistant:
    place = str(path) if line is None else f"{path}:{line}"
    return InvalidAssistant(f"{place}: {problem}; {fix}")


def line_in_toml_error(message: str) -> int | None:
    found = _TOML_LINE.search(message)
    return int(found.group(1)) if found else None


def line_of_key(text: str, path: Sequence[str | int]) -> int | None:
    """The line where the value at `path` is written, or the nearest thing above it that is there."""
    lines = text.splitlines()
    at, found = 0, None
    for depth, part in enumerate(path):
        if isinstance(part, int):
            table = re.compile(rf"\s*\[\[\s*{re.escape(str(path[depth - 1]))}\s*\]\]") if depth else None
            hits = [n for n, line in enumerate(lines) if table and table.match(line)]
            at = hits[part] if part < len(hits) else at
        else:
            name = re.escape(part)
            key = re.compile(rf"\s*(?:\[\[?[^\]]*\b{name}\b[^\]]*\]|\"?{name}\"?\s*[.=]|.*[{{,]\s*\"?{name}\"?\s*=)")
            at = next((n for n in range(at, len(lines)) if key.match(lines[n])), -1)
            if at < 0:
                return found
        found = at + 1
    return found
