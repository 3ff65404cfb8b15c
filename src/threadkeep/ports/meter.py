"""Counting and timing what happens, for operators. Numbers only: no text, no id of anybody."""

from __future__ import annotations

from typing import Protocol


class Meter(Protocol):
    """Both are quick, never wait and never raise for a value of a known metric."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...

    def observe(self, name: str, value: float, **labels: str) -> None: ...
