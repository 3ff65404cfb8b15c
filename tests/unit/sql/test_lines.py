"""What a driver says when its server has gone, told as SQLAlchemy would."""

from __future__ import annotations

import asyncmy.errors
import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from threadkeep.db.pool import _TRANSLATING

ASTRAY = [
    asyncpg.InternalClientError("cannot switch to idle state"),
    asyncpg.InterfaceError("connection is closed"),
    asyncmy.errors.InternalError("Packet sequence number wrong - got 3 expected 1"),
    asyncmy.errors.OperationalError(2013, "Lost connection"),
]
AT_WORK = [asyncpg.UniqueViolationError("taken"), asyncmy.errors.OperationalError(1213, "Deadlock found")]


@pytest.mark.parametrize(("errors", "lost"), [(ASTRAY, True), (AT_WORK, False)], ids=["astray", "at work"])
def test_a_driver_that_no_longer_knows_where_it_is_has_lost_its_server(errors: list[Exception], lost: bool) -> None:
    for error in errors:
        with pytest.raises(DBAPIError) as told, _TRANSLATING:
            raise error
        assert told.value.connection_invalidated is lost
