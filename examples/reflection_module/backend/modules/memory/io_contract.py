"""The I/O contract: what a route hands in, checked, redacted and under one set of names."""

from __future__ import annotations

from typing import Any

from backend.modules.memory.core import memory


def validate_and_normalize(payload: dict[str, Any]) -> dict[str, Any]:
    """Raises `threadkeep.errors.InvalidInput` naming the field; only the two ids are required."""
    return memory.validate_and_normalize(payload)
