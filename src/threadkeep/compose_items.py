"""A URL to items of LangGraph's stores, and to what their search by meaning needs."""

from __future__ import annotations

from threadkeep.checkpoints.items import SqlItems
from threadkeep.compose import open_database
from threadkeep.compose_embedder import chosen_embedder
from threadkeep.compose_redaction import admission_rules
from threadkeep.policy.admit import Rules
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import Embedder
from threadkeep.settings import Settings


async def open_items(url: str, settings: Settings, clock: Clock = system_clock) -> SqlItems:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    return SqlItems(await open_database(url, settings), clock, owned=True)


def embedder_named(name: str, settings: Settings) -> Embedder | None:
    """As `THREADKEEP_EMBEDDER` names them. Raises `InvalidSetting` and `MissingExtra`."""
    return chosen_embedder(settings.model_copy(update={"embedder": name}))


def rules_of(settings: Settings) -> Rules:
    return admission_rules(settings)
