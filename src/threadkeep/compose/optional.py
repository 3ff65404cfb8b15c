"""Modules that need an extra, imported only where they are wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from threadkeep.errors import MissingExtra


def part(name: str, extra: str, wanted_for: str) -> Any:
    """Import the module. Raise `MissingExtra` where a package that comes with `extra` is not installed."""
    try:
        return import_module(f"threadkeep.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("threadkeep"):
            raise
        raise MissingExtra(extra, wanted_for) from None
