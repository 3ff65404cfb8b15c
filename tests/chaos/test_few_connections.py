"""A database server with few connections: one process shares one pool, waits its turn, and fails no request."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.chaos.harness import first_line, process, sized, until
from tests.contract.sql_statements import execute
from tests.servers.locate import MARIADB, POSTGRES
from tests.servers.mariadb import MariaDbServer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.provide import need_program
from tests.servers.server import OwnedServer

CLIENTS = 64
SIZE, OVERFLOW = 10, 10  # the defaults
QUESTIONS = (
    "Bảo hành laptop bao lâu?",
    "Shop có giao hàng tận nơi không?",
    "Can I return a graphics card?",
    "RTX 4060 giá bao nhiêu?",
)
# The service's own account: on PostgreSQL three connections are kept for superusers, who look on from outside.
ACCOUNT = {
    "postgres": (
        "CREATE ROLE service LOGIN PASSWORD 'loopback-only'",
        "CREATE DATABASE service OWNER service",
    ),
    "mariadb": (
        "CREATE DATABASE service",
        "CREATE USER service@'127.0.0.1' IDENTIFIED BY 'loopback-only'",
        "GRANT ALL ON service.* TO service@'127.0.0.1'",
    ),
}
COUNTED = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE usename = 'service'",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE user = 'service'",
}

Server = Callable[[int], tuple[OwnedServer, str]]


@pytest.fixture(params=["postgres", "mariadb"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server_with(kind: str) -> Iterator[Server]:
    """A server of so many connections, and the URL for the service's account."""
    started: list[OwnedServer] = []

    def start(connections: int) -> tuple[OwnedServer, str]:
        made, program = (PostgresServer, POSTGRES) if kind == "postgres" else (MariaDbServer, MARIADB)
        server = made(need_program(program), max_connections=str(connections))
        started.append(server)
        server.start()
        for statement in ACCOUNT[kind]:
            asyncio.run(execute(server.url, statement))
        scheme, _, rest = server.url.partition("://")
        return server, f"{scheme}://service:loopback-only@{rest.partition('@')[2].partition('/')[0]}/service"

    yield start
    for server in started:
        server.stop()


class Watch:
    """How many connections the service has at the server, looked at again and again over one of another account."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask
        self.most = 0
        self.looks = 0

    async def now(self) -> int:
        open_now = int(await self._ask())
        self.most, self.looks = max(self.most, open_now), self.looks + 1
        return open_now

    async def go_on(self) -> None:
        while True:
            await self.now()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def watching(kind: str, url: str) -> AsyncGenerator[Watch]:
    async with connected(kind, url) as ask:
        watch = Watch(ask)
        running = asyncio.create_task(watch.go_on())
        try:
            yield watch
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def connected(kind: str, url: str) -> AsyncGenerator[Callable[[], Any]]:
    alone = asyncio.Lock()
    if kind == "postgres":
        import asyncpg

        postgres = await asyncpg.connect(url)

        async def ask() -> Any:
            async with alone:
                return await postgres.fetchval(COUNTED[kind])

        try:
            yield ask
        finally:
            await postgres.close()
    else:
        from tests.servers.mariadb import _connect  # pyright: ignore[reportPrivateUsage]

        connection = await _connect(url, database=None)
        async with connection, connection.cursor() as cursor:

            async def look() -> Any:
                async with alone:
                    await cursor.execute(COUNTED[kind])
                    return (await cursor.fetchone())[0]

            yield look


def requests(number: int) -> tuple[str, str, dict[str, Any]]:
    """Every surface that stands on the database, in turn."""
    question, guest = QUESTIONS[number % len(QUESTIONS)], f"guest{number % 32}"
    scope = {"user": guest, "conversation": "c"}
    said = [{"kind": "UserMessage", "text": f"{question} ({number})"}, {"kind": "ModelResponse", "text": "Hai năm."}]
    session = str(uuid.UUID(int=number % 200, version=4))
    return (
        ("POST", "/agent/chat", {"json": {"sessionId": session, "message": question}}),
        ("POST", "/v1/memory/append", {"json": {"scope": scope, "events": said}}),
        ("POST", "/v1/memory/recall", {"json": {"scope": scope, "query": question, "budget": 400}}),
        (
            "POST",
            "/retrieval/query",
            {"json": {"query": question, "useCache": False}, "headers": {"X-Conversation-ID": guest}},
        ),
        ("GET", "/v1/memory/history", {"params": scope | {"limit": 40}}),
    )[number % 5]


async def ask_all(client: httpx.AsyncClient, count: int) -> Counter[str]:
    """From `CLIENTS` tasks at once; how often each answer that is no success came, by path."""
    left, failed = iter(range(count)), Counter[str]()

    async def one_client() -> None:
        for number in left:
            method, path, sent = requests(number)
            answer = await client.request(method, path, **sent)
            if not answer.is_success:
                failed[f"{path} {answer.status_code} {answer.json().get('code')}"] += 1

    await asyncio.gather(*(one_client() for _ in range(CLIENTS)))
    return failed


@asynccontextmanager
async def served(url: str, **environment: str) -> AsyncGenerator[httpx.AsyncClient]:
    port = free_port()
    serve = ("threadkeep.cli", "serve", "--json", "--port", str(port), "--url", url, "--assistant", "examples/pc_shop")
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    address = f"http://127.0.0.1:{port}"
    with process(*serve, DATABASE_URL=url, **environment) as service:
        assert json.loads(await asyncio.to_thread(first_line, service))["url"]
        async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits, trust_env=False) as client:
            yield client


@pytest.mark.timeout(1_200)
async def test_one_process_stays_within_its_pool_and_fails_no_request(kind: str, server_with: Server) -> None:
    server, url = await asyncio.to_thread(server_with, 25)
    async with served(url) as client, watching(kind, server.url) as watch:
        failed = await ask_all(client, sized(100, 2_000))
        print(f"{kind}: failed {dict(failed)}, at most {watch.most} connections in {watch.looks} looks")
        assert failed == {}
        assert SIZE < watch.most <= SIZE + OVERFLOW
        back = await until(lambda: _at_most(watch, SIZE), seconds=60, what="back at the base size")
        print(f"{kind}: back at {await watch.now()} connections after {back:.1f} s")


@pytest.mark.timeout(1_200)
async def test_a_server_with_fewer_connections_than_the_pool_is_waited_for(kind: str, server_with: Server) -> None:
    server, url = await asyncio.to_thread(server_with, 10)
    async with served(url) as client, watching(kind, server.url) as watch:
        failed = await ask_all(client, sized(60, 720))
        print(f"{kind}: failed {dict(failed)}, at most {watch.most} connections in {watch.looks} looks")
        assert failed == {}


async def _at_most(watch: Watch, connections: int) -> bool:
    return await watch.now() <= connections
