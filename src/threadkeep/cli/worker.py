"""`threadkeep worker`: from the journal to the archive, until it is stopped."""

from __future__ import annotations

import asyncio
import json as encoder
import logging
import signal
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from threadkeep.cli.options import Json, RedisJournal, Url
from threadkeep.cli.output import LAG, log_to, notes
from threadkeep.cli.upkeep import retaining_daily
from threadkeep.compose.worker import OpenWorker, open_worker
from threadkeep.errors import ThreadkeepError
from threadkeep.settings import Settings, load_settings

_lag_log = logging.getLogger(LAG)


def worker(
    url: Url = None,
    redis: RedisJournal = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Entries written at once. Otherwise MEMORY_FLUSH_BATCH_SIZE.")
    ] = None,
    json: Json = False,
) -> None:
    """Bring queued turns from Redis to the archive until SIGTERM or Ctrl-C; as many workers as you like."""
    settings = load_settings()
    if batch is not None:
        settings = settings.model_copy(update={"memory_flush_batch_size": batch})
    log_to(sys.stderr)
    asyncio.run(_work(url, redis, settings, as_json=json))


async def _work(url: str | None, redis: str | None, settings: Settings, *, as_json: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_worker(url, redis=redis, settings=settings) as opened, retaining_daily(url, settings, redis):
        _announce(opened.name, as_json=as_json)
        telling = asyncio.create_task(_log_lag(opened, settings.lag_log_seconds))
        stopping = asyncio.create_task(_stop_when(stop, opened))
        try:
            await opened.run()
        finally:
            for task in (telling, stopping):
                task.cancel()
            await asyncio.gather(telling, stopping, return_exceptions=True)


async def _stop_when(stop: asyncio.Event, opened: OpenWorker) -> None:
    await stop.wait()
    opened.stop()


async def _log_lag(opened: OpenWorker, seconds: float) -> None:
    """At once, and then at intervals, for operators who watch the log."""
    while True:
        try:
            lag = {"journal": "ok", **asdict(await opened.lag())}
        except ThreadkeepError:
            lag = {"journal": "away"}
        _lag_log.info(encoder.dumps({"event": "lag", "worker": opened.name, **lag}))
        await asyncio.sleep(seconds)


def _announce(name: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(encoder.dumps({"worker": name}) + "\n")  # on one line, for a program that waits for it
        sys.stdout.flush()
    else:
        notes.print(f"Worker {name} flushes the journal (Ctrl-C stops it)")
