"""A URL to a store of checkpoints, for adapters that keep nothing else."""

from __future__ import annotations

from threadkeep.checkpoints.sqlite import SqliteCheckpoints
from threadkeep.compose import is_server_url, sql_parts, sqlite_path
from threadkeep.compose_metrics import meter_for
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.metrics.checkpoints import MeasuredCheckpoints
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.settings import Settings


async def open_checkpoints(url: str, settings: Settings, clock: Clock = system_clock) -> CheckpointStore:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    meter = meter_for(settings)
    store = await _opened(url, settings, clock)
    return store if meter is None else MeasuredCheckpoints(store, meter)


async def _opened(url: str, settings: Settings, clock: Clock) -> CheckpointStore:
    if is_server_url(url):
        parts = sql_parts(url)
        return parts.SqlCheckpoints(await parts.open_server(url, settings), clock, owned=True)
    database = SqliteDatabase(sqlite_path(url))
    await database.open()
    return SqliteCheckpoints(database, clock, owned=True)


def is_bound_to_its_loop(url: str) -> bool:
    """A server's connections belong to the loop they were opened in; the embedded store has threads of its own."""
    return is_server_url(url)
