"""The mapping held against the real table: what does not fit, and which setting to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from threadkeep.archive.mapped.config import MappedConfig, MappedTable
from threadkeep.archive.mapped.rows import Layout
from threadkeep.archive.mapped.shape import Kind, RealColumn, Shape
from threadkeep.errors import InvalidSetting

_FITTING: dict[str, tuple[Kind, ...]] = {
    "conversation_id": ("text", "uuid"),
    "user_id": ("text", "uuid"),
    "token_data": ("json", "text"),
    "reflection": ("json", "text"),
    "text_cache": ("json", "text"),
    "created_at": ("time", "text"),
}
_ROOM = {"conversation_id": 36, "user_id": 36, "cid": 62, "created_at": 32}  # a UUID, a CIDv1, an ISO time
_ROOM_FOR_JSON = 100_000


@dataclass(frozen=True, slots=True)
class Misfit:
    """`fatal`: nothing can be stored. Otherwise it works, less well or not for every record."""

    setting: str
    problem: str
    fix: str
    fatal: bool = True

    def as_error(self) -> InvalidSetting:
        return InvalidSetting(self.setting, self.problem, self.fix)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def layout_of(shape: Shape) -> Layout:
    return Layout(shape, {field: shape.columns[real] for field, real in shape.name.columns.items()})


def misfits(name: MappedTable, shape: Shape | None) -> list[Misfit]:
    """Everything that does not fit, the fatal first."""
    if shape is None:
        fix = "name a table that exists; this module creates none"
        return [Misfit(name.setting, f"the table {name.shown} is not there", fix)]
    if not shape.takes_rows:
        fix = "name a table, or a view that can be written to"
        return [Misfit(name.setting, f"{name.shown} is a view that takes no rows", fix)]
    found = [one for field, real in name.columns.items() for one in _of_column(name, field, real, shape)]
    found += _unfilled(name, shape)
    if not any(one.fatal for one in found):
        found += _of_key(name, layout_of(shape))
    return sorted(found, key=lambda one: not one.fatal)


def without_right(shape: Shape) -> str | None:
    """Return the first mapped column that lacks a right which another mapped column has; None where all are alike."""
    rights = {
        real: shape.rights.get(real, frozenset()) for real in shape.name.columns.values() if real in shape.columns
    }
    most = frozenset[str]().union(*rights.values())
    return next((real for real, own in rights.items() if own != most), None)


def missing_rights(name: MappedTable, shape: Shape | None) -> Iterator[Misfit]:
    """Yield what this user may not do with the mapped columns. Storing needs all three rights on each of them.

    They are no misfit of the mapping: a row that lacks a right is refused by the server, row by row.
    """
    if shape is None:
        return
    ours = [real for real in name.columns.values() if real in shape.columns]
    for right in ("SELECT", "INSERT", "UPDATE"):
        without = [real for real in ours if right not in shape.rights.get(real, frozenset())]
        if without:
            where = "" if len(without) == len(ours) else f" in {', '.join(without)}"
            yield denied(name, f"{right}{where}")


def denied(name: MappedTable, what: str) -> Misfit:
    fix = f"GRANT SELECT, INSERT, UPDATE ON {name.shown} to it"
    return Misfit(name.setting, f"the user of DATABASE_URL lacks the right to {what} on {name.shown}", fix)


def left_out(config: MappedConfig) -> Iterator[Misfit]:
    if "conversations" not in config.tables:
        problem = "is left out, and turns without a reflection are kept nowhere else"
        yield Misfit("tables.conversations", problem, "name a table if they are to be kept", fatal=False)


def _of_column(name: MappedTable, field: str, real: str, shape: Shape) -> Iterator[Misfit]:
    setting, column = name.column_settings[field], shape.columns.get(real)
    if column is None:
        yield Misfit(setting, f"{name.shown} has no column {real}", "name one that exists, or map it to null")
        return
    where = f"{name.shown}.{real}"
    if column.computed:
        yield Misfit(setting, f"{where} is computed by the server", "map one that can be written, or map it to null")
        return
    if column.kind not in _FITTING.get(field, ("text",)):
        fits = " or ".join(_FITTING.get(field, ("text",)))
        yield Misfit(setting, f"{where} is {column.type}", f"map a column of type {fits}")
        return
    yield from _too_short(setting, field, where, column)
    if field in ("conversation_id", "user_id"):
        yield from _of_id(setting, where, column)


def _of_id(setting: str, where: str, column: RealColumn) -> Iterator[Misfit]:
    if not column.exact:
        problem = f"{where} compares without regard to case"
        yield Misfit(setting, problem, "give it a binary collation (utf8mb4_bin)", fatal=False)
    if column.charset is not None:
        problem = f"{where} holds the characters of {column.charset} only; an id with others is refused"
        yield Misfit(setting, problem, "give it the character set utf8mb4", fatal=False)


def _too_short(setting: str, field: str, where: str, column: RealColumn) -> Iterator[Misfit]:
    most = column.most_chars if column.most_chars is not None else column.most_bytes
    if column.kind != "text" or most is None or field in ("user_message", "assistant_message"):
        return
    if most < _ROOM.get(field, _ROOM_FOR_JSON):
        problem = f"{where} holds {most:,} characters; a longer {field} is refused"
        yield Misfit(setting, problem, "widen the column, or map another", fatal=False)


def _unfilled(name: MappedTable, shape: Shape) -> Iterator[Misfit]:
    ours = set(name.columns.values())
    for column in shape.columns.values():
        if column.name not in ours and not column.nullable and not column.filled:
            problem = f"{name.shown}.{column.name} must be given, and nothing is mapped to it"
            yield Misfit(name.setting, problem, "give the column a default, or map another table")


def _of_key(name: MappedTable, layout: Layout) -> Iterator[Misfit]:
    columns = f"({layout.name('conversation_id')}, {layout.name('created_at')})"
    if not layout.keyed:
        fix = "add one; until then writers wait for each other"
        yield Misfit(name.setting, f"{name.shown} has no unique index on {columns}", fix, fatal=False)
    if layout.coarse:
        digits = layout.columns["created_at"].digits
        problem = f"{name.shown}.{layout.name('created_at')} keeps {digits} digits of a second"
        fix = "use a column that keeps 6; until then close turns are moved apart"
        yield Misfit(name.column_settings["created_at"], problem, fix, fatal=False)
