"""The embedded store of documents that tests of folders fill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.knowledge.store import DatabaseKnowledge
from threadkeep.recall.normalise import indexed_terms


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DatabaseKnowledge]:
    database = SqliteDatabase(str(tmp_path / "tk.db"))
    await database.open()
    yield DatabaseKnowledge(database, indexed_terms)
    await database.close()
