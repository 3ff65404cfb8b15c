"""What tests of several parts of the embedded store begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from threadkeep.sqlite.database import Database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(str(tmp_path / "test.db"), readers=1)
    await database.open()
    await database.write(lambda c: c.execute("CREATE TABLE t (n INTEGER UNIQUE)"))
    yield database
    await database.close()
