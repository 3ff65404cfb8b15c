"""Standard output and error as a command finds them: in any encoding, full, or closed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def ready_streams() -> None:
    """What the terminal's encoding lacks is shown as `?`; a stream that was closed refuses what is written to it."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # so after `>&-`
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")


def give_up_stdout() -> None:
    """What could not be written is let go: Python would try again at its end, and complain on its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
        sys.stdout.flush()
    os.close(nowhere)
