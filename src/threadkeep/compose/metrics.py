"""Settings to a meter: one for each process and folder, however many memories and savers it opens."""

from __future__ import annotations

import os
import stat
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.ports.meter import Meter
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.metrics.prometheus import PrometheusMeter

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def when_served(settings: Settings) -> Settings:
    """A process that can be scraped measures, unless a setting forbids it or the library is missing."""
    if settings.metrics == "auto" and find_spec("prometheus_client") is not None:
        return settings.model_copy(update={"metrics": "on"})
    return settings


def meter_for(settings: Settings) -> Meter | None:
    """None where no scraper would read it. Raises `MissingExtra` and `InvalidSetting`."""
    if settings.metrics == "off" or (settings.metrics == "auto" and settings.prometheus_multiproc_dir is None):
        return None
    return scraped_meter(settings)


def scraped_meter(settings: Settings) -> PrometheusMeter:
    if find_spec("prometheus_client") is None:
        raise MissingExtra("metrics", "THREADKEEP_METRICS=on")
    folder = settings.prometheus_multiproc_dir
    return _meter(None if folder is None else _private(folder))


@cache
def _meter(folder: str | None) -> PrometheusMeter:
    return import_module("threadkeep.metrics.prometheus").PrometheusMeter(folder)


def _private(folder: str) -> str:
    """Made if it is not there. A user who could write to it could forge this service's metrics."""
    path = Path(folder).absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise InvalidSetting(_FOLDER, f"cannot be used ({error.strerror})", "name a folder that can be made") from None
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidSetting(_FOLDER, "can be written to by others", "name a folder of this account's own, mode 0700")
    return str(path)
