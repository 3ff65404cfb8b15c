"""Who else than the archive keeps something of users, in one database."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from types import ModuleType
from typing import cast

from threadkeep.agent_rows.kept import KeptRows, ReadItem
from threadkeep.checkpoints.kept import KeptThreads, ReadThread
from threadkeep.db.database import Database
from threadkeep.errors import MissingExtra
from threadkeep.ports.checkpoints import CheckpointThreads
from threadkeep.ports.clock import Clock
from threadkeep.ports.items import ItemStore
from threadkeep.ports.keepers import Keeper
from threadkeep.settings import Settings


def keepers(
    database: Database, checkpoints: CheckpointThreads, items: ItemStore, settings: Settings, clock: Clock
) -> dict[str, Keeper]:
    turns = timedelta(days=settings.turn_retention_days)
    return {
        "checkpoints": KeptThreads(database, checkpoints, _read_thread),
        "items": KeptRows(database, items, _read_item, turns, clock),
    }


def _read_thread() -> ReadThread:
    return cast("ReadThread", _exporting().thread_as_json)


def _read_item() -> ReadItem:
    return cast("ReadItem", _exporting().item_as_json)


def _exporting() -> ModuleType:
    """What reads LangGraph's values, imported only where there are any to be exported: it needs an extra."""
    try:
        return import_module("threadkeep.adapters.langgraph.exporting")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("threadkeep"):
            raise
        raise MissingExtra("langgraph", "an export of what LangGraph has stored") from None
