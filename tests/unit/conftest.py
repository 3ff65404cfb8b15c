"""What tests of several parts of the embedded store begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from threadkeep.db.sqlite import SqliteDatabase


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(str(tmp_path / "test.db"), readers=1)
    await database.open()
    await database.transact(lambda c: c.execute("CREATE TABLE t (n INTEGER UNIQUE)"))
    yield database
    await database.close()
