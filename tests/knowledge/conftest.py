"""The embedded store of documents that tests of folders fill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from threadkeep.knowledge.sqlite import SqliteKnowledge
from threadkeep.recall.normalise import indexed_terms
from threadkeep.sqlite.database import Database


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteKnowledge]:
    database = Database(str(tmp_path / "tk.db"))
    await database.open()
    yield SqliteKnowledge(database, indexed_terms)
    await database.close()
