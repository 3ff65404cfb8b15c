"""How long a piece of work took, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from threadkeep.ports.meter import Meter


@dataclass(slots=True)
class Timed:
    status: str | None = "failed"  # unless the work says otherwise at its end


@contextmanager
def timed(meter: Meter, name: str, status: str | None = "failed") -> Generator[Timed]:
    """Observed once, however the work ends. None for a metric without a status."""
    work, began = Timed(status), time.perf_counter()
    try:
        yield work
    finally:
        labels = {} if work.status is None else {"status": work.status}
        meter.observe(name, time.perf_counter() - began, **labels)
