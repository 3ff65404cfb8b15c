"""What `threadkeep doctor` says of tables that belong to the application: does the mapping fit them?"""

from __future__ import annotations

import asyncio
from typing import Any

from threadkeep.cli.output import in_columns, screen
from threadkeep.compose.inspect import inspect_mapped, named_config
from threadkeep.errors import ThreadkeepError
from threadkeep.settings import Settings


def mapped_described(url: str | None, mapping: str | None, settings: Settings) -> dict[str, Any] | None:
    """None where no tables are mapped. `ok` is False where nothing could be stored in them."""
    path = mapping or named_config()
    if path is None and "memory_table_map" not in settings.model_fields_set:
        return None
    described: dict[str, Any] = {"config": path, "enabled": None, "tables": {}, "columns": {}}
    described |= {"misfits": [], "error": None}
    try:
        report = asyncio.run(inspect_mapped(url or settings.database_url, path, settings))
    except ThreadkeepError as error:
        return described | {"ok": False, "error": {"code": error.code, "detail": str(error)}}
    return described | {"ok": report.usable} | report.as_dict()


def print_mapping(mapped: dict[str, Any]) -> None:
    """Print which table and column stands for which of ours, and below it what does not fit."""
    table = in_columns("Mapping", "ours", "yours")
    for logical, name in mapped["tables"].items():
        table.add_row(logical, name)
        for field, column in mapped["columns"][logical].items():
            table.add_row(f"  {field}", "–" if column is None else column)
    screen().print(table)
    for warning in mapped_warnings(mapped):
        screen().print(f"! {warning}", style="yellow")


def mapped_warnings(mapped: dict[str, Any] | None) -> list[str]:
    if mapped is None:
        return []
    told = [f"{one['setting']}: {one['problem']}; {one['fix']}" for one in mapped["misfits"]]
    return told + ([mapped["error"]["detail"]] if mapped["error"] else [])
