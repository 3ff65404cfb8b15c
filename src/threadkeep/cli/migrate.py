"""`threadkeep migrate`: bring a store's tables up to date, or only say whether they are."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Url
from threadkeep.cli.output import print_json, screen
from threadkeep.compose.upkeep import SchemaReport, check_schema, migrate_schema
from threadkeep.settings import load_settings


def migrate(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 1 if there is work to do.")] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Bring the store's tables up to date. Safe to repeat, and to run by several processes at once."""
    settings = load_settings()
    work = check_schema if check else migrate_schema
    report = asyncio.run(work(url or settings.database_url, settings))
    if json:
        print_json(report.as_dict())
    else:
        screen().print(_described(report))
    if not report.up_to_date:
        raise typer.Exit(1)


def _described(report: SchemaReport) -> str:
    if report.found == report.newest:
        return f"The tables are up to date ({report.newest})."
    found = report.found or "no tables yet"
    if report.up_to_date:
        return f"The tables were brought up to date: {found} → {report.newest}."
    return f"The tables are not up to date ({found}; this version needs {report.newest}): run `threadkeep migrate`."
