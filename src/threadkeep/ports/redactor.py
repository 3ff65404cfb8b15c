"""Masking personal data and secrets before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Redacted(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def counts(self) -> Mapping[str, int]: ...


class Redactor(Protocol):
    def __call__(self, text: str, language: str | None = None) -> Redacted:
        """Pure and deterministic; redacting its own output changes nothing."""
        ...
