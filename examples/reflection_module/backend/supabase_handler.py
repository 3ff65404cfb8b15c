"""The application's own way to its tables, which the memory module neither uses nor changes."""

from __future__ import annotations

import os


def database_url() -> str | None:
    return os.environ.get("DATABASE_URL")
