"""Bring queued turns from Redis into the mapped tables.

    python -m backend.jobs.memory_flush_worker          # until SIGTERM or Ctrl-C
    python -m backend.jobs.memory_flush_worker --once   # what is queued now; for cron

Any number of workers may run, on any number of machines. Killed at any moment, they lose and double nothing.
"""

from __future__ import annotations

import signal
import sys
import threading

from backend.modules.memory.core import memory


def flush_once(batch: int | None = None) -> int:
    """One batch of at most `MEMORY_FLUSH_BATCH_SIZE`; how many turns were stored."""
    return memory.flush_once(batch)


def flush_all() -> int:
    stored = 0
    while some := flush_once():
        stored += some
    return stored


def run() -> None:
    """On a thread of the module's own, until the process is asked to end."""
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_end.set())
    memory.start_worker()
    asked_to_end.wait()
    memory.close()


if __name__ == "__main__":
    if "--once" in sys.argv[1:]:
        sys.stdout.write(f"stored {flush_all()}\n")
        memory.close()
    else:
        run()
