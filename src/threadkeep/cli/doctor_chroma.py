"""What `threadkeep doctor` says of Chroma: where it is, and what keeps it from being used."""

from __future__ import annotations

from typing import Any

from threadkeep.cli.resolved import masked
from threadkeep.compose.inspect import inspect_chroma
from threadkeep.settings import Settings


def chroma_described(settings: Settings) -> dict[str, Any] | None:
    """None where vectors are kept beside the messages."""
    found = inspect_chroma(settings)
    if found is None:
        return None
    place = settings.chroma_path
    return {"place": masked(place) if "://" in place else place, "ok": found.problem is None, "problem": found.problem}


def chroma_warnings(chroma: dict[str, Any] | None) -> list[str]:
    if chroma is None or chroma["ok"]:
        return []
    fix = "mend or empty it, or correct CHROMA_PATH; what is missing is made anew"
    return [f"Chroma: {chroma['problem']}; messages are found by their words alone: {fix}"]
