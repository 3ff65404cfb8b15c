"""A database whose password was changed under a running service: it answers, and refuses. An outage like any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.contract.sql_statements import execute, named_database
from tests.servers.server import Server
from threadkeep import Scope, UserMessage, open_memory

NAME = "tk_rotated"
HOT, NEW = Scope("shop", "u42", "hot"), Scope("shop", "u42", "new")
_POSTGRES = {
    "make": [f"CREATE ROLE {NAME} LOGIN PASSWORD 'old'", f"CREATE DATABASE {NAME} OWNER {NAME}"],
    "change": [
        f"ALTER ROLE {NAME} PASSWORD '{{}}'",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{NAME}'",
    ],
    "drop": [f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)", f"DROP ROLE IF EXISTS {NAME}"],
}
_MARIADB = {
    "make": [
        f"CREATE DATABASE {NAME}",
        f"CREATE USER {NAME}@'%' IDENTIFIED BY 'old'",
        f"GRANT ALL ON {NAME}.* TO {NAME}@'%'",
    ],
    "change": [f"ALTER USER {NAME}@'%' IDENTIFIED BY '{{}}'", f"KILL USER {NAME}"],
    "drop": [f"DROP DATABASE IF EXISTS {NAME}", f"DROP USER IF EXISTS {NAME}@'%'"],
}


@dataclass(frozen=True)
class Login:
    server: str
    statements: dict[str, list[str]]

    @property
    def url(self) -> str:
        there = urlsplit(named_database(self.server, NAME))
        return urlunsplit(there._replace(netloc=f"{NAME}:old@{there.hostname}:{there.port}"))

    async def say(self, what: str, password: str = "") -> None:
        await execute(self.server, *(one.format(password) for one in self.statements[what]))


@pytest.fixture(params=["postgres", "mariadb"])
async def login(request: pytest.FixtureRequest) -> AsyncIterator[Login]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    login = Login(server.url, _POSTGRES if request.param == "postgres" else _MARIADB)
    await login.say("drop")
    await login.say("make")
    yield login
    await login.say("drop")


async def test_a_changed_password_costs_no_turn_and_no_hot_read(login: Login, redis_server: Any) -> None:
    redis_server.wipe()
    async with open_memory(login.url, redis=redis_server.url) as memory:
        await memory.append(HOT, [UserMessage("one", language="en")])
        await memory.flushed()
        await login.say("change", "new")
        for scope in (HOT, NEW):
            assert (await memory.append(scope, [UserMessage("two, and what language is it in?")])).status == "queued"
        assert [one.content for one in (await memory.history(HOT, limit=50)).messages][-1].startswith("two")
        assert (await memory.health()).stores == {"redis": "ok", "archive": "away"}
        await login.say("change", "old")
        await memory.flushed()
        assert (await memory.health()).lag.dead == 0  # pyright: ignore[reportOptionalMemberAccess]
    async with open_memory(login.url) as archive:
        found = [len((await archive.history(scope)).messages) for scope in (HOT, NEW)]
    assert found == [2, 1]
