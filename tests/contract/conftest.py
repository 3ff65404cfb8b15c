import asyncio
from collections.abc import Callable, Iterator
from itertools import count

import pytest

pytest.register_assert_rewrite("threadkeep.testing")

_numbers = count(1)


@pytest.fixture(params=["postgres", "mariadb"])
def sql_url(request: pytest.FixtureRequest) -> str:
    """A server of each kind, whose tables other tests use too."""
    return request.getfixturevalue(f"{request.param}_server").url


@pytest.fixture
def new_database(sql_url: str) -> Iterator[Callable[[], str]]:
    """`new_database()`: the URL of a database of this test's own, empty."""
    from tests.contract.sql_statements import execute, named_database

    made: list[str] = []

    def make() -> str:
        name = f"tk_test_{next(_numbers)}"
        asyncio.run(execute(sql_url, f"CREATE DATABASE {name}"))
        made.append(name)
        return named_database(sql_url, name)

    yield make
    for name in made:
        forced = " WITH (FORCE)" if sql_url.startswith("postgres") else ""
        asyncio.run(execute(sql_url, f"DROP DATABASE {name}{forced}"))
