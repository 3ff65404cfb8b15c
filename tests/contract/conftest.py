import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

_numbers = count(1)


@pytest.fixture(params=["postgres", "mariadb"])
def sql_url(request: pytest.FixtureRequest) -> str:
    """A server of each kind, whose tables other tests use too."""
    return request.getfixturevalue(f"{request.param}_server").url


@pytest.fixture
def own_url(sql_url: str) -> Iterator[str]:
    """A database of the test's own, empty."""
    from tests.contract.sql_statements import execute, named_database

    name = f"tk_test_{next(_numbers)}"
    asyncio.run(execute(sql_url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"))
    yield named_database(sql_url, name)
    forced = " WITH (FORCE)" if sql_url.startswith("postgres") else ""
    asyncio.run(execute(sql_url, f"DROP DATABASE {name}{forced}"))
