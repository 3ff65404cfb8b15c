"""Plain tables, and the two figures every timing is told by."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

Cell = str | float | None


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Text to the left, figures to the right, `–` where there is none."""
    cells = [list(header), *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    return "\n".join(["", title, lines[0], "-" * len(lines[0]), *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = [
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join((first, *rest))


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.2f}"


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def p95(values: Sequence[float]) -> float:
    """The smallest value that at least 95 % do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
