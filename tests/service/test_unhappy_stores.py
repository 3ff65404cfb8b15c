"""Stores that will not do: too new, read-only, full, damaged. Typed, as a problem, and nothing half-written."""

import sqlite3
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.disks import fill, make_read_only, tiny_disk
from tests.service.talking import TALK, append, contents, is_problem, said
from threadkeep import Scope, SyncMemory, UserMessage
from threadkeep.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from threadkeep.http.app import create_app
from threadkeep.http.responses import problem_of
from threadkeep.settings import Settings

ME = Scope("shop", "u42", "c1")


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def seqs(memory: SyncMemory) -> list[int]:
    return [message.seq for message in memory.history(ME, limit=10_000).messages]


def damage(database: Path) -> None:
    """Everything after the first page is overwritten, as a failing disk might."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (size - 4_096))


def test_a_store_of_a_newer_schema_is_refused_and_left_as_it_is(database: Path) -> None:
    with SyncMemory(url_of(database)) as memory:
        memory.append(ME, [UserMessage("hello")])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE tk_schema SET version = 999")
    connection.close()
    before = database.read_bytes()

    with pytest.raises(SchemaTooNew, match="upgrade"):
        SyncMemory(url_of(database)).open()

    assert database.read_bytes() == before
    assert problem_of(SchemaTooNew("")).status == 503


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(database: Path) -> None:
    database.write_bytes(b"these are holiday pictures" * 1_000)

    with pytest.raises(StoreCorrupt):
        SyncMemory(url_of(database)).open()

    assert database.read_bytes() == b"these are holiday pictures" * 1_000


def test_a_read_only_store_is_refused_by_name(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 1_024) as disk:
        with SyncMemory(url_of(disk / "memory.db")) as memory:
            memory.append(ME, [UserMessage("hello")])
        make_read_only(disk)

        with pytest.raises(StoreError) as refused, SyncMemory(url_of(disk / "memory.db")) as memory:
            memory.append(ME, [UserMessage("more")])

    assert isinstance(refused.value, StoreReadOnly)
    assert not refused.value.retryable
    assert problem_of(refused.value).status == 503


def test_a_full_disk_loses_nothing_stores_nothing_by_half_and_works_again_with_space(tmp_path: Path) -> None:
    turn = [UserMessage("question " * 300), UserMessage("answer " * 300)]
    with tiny_disk(tmp_path / "disk", 1_024) as disk, SyncMemory(url_of(disk / "memory.db")) as memory:
        memory.append(ME, turn)
        ballast = fill(disk)

        acknowledged, refused = 1, None
        while refused is None:
            try:
                memory.append(ME, turn)
                acknowledged += 1
            except StoreError as error:
                refused = error

        assert isinstance(refused, StoreFull)
        assert refused.retryable
        assert seqs(memory) == list(range(1, 2 * acknowledged + 1))
        ballast.unlink()
        memory.append(ME, turn)
        assert seqs(memory) == list(range(1, 2 * acknowledged + 3))


async def test_a_full_disk_is_a_problem_and_the_service_recovers(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 1_024) as disk:
        async with client_of(create_app(Settings(DATABASE_URL=url_of(disk / "memory.db")))) as client:
            await append(client, said("before"))
            ballast = fill(disk)
            answer = await _until_refused(client)

            assert is_problem(answer, 507, "store_full")
            assert answer.json()["retryable"] is True
            assert str(disk) not in answer.text
            assert is_problem(await client.get("/readyz"), 503, "cannot_store")
            ballast.unlink()
            assert (await append(client, said("after"))).status_code == 200
            assert (await contents(client))[-1] == "after"


async def _until_refused(client: httpx.AsyncClient) -> httpx.Response:
    """A little space may be left inside the log's last page."""
    for number in range(1_000):
        answer = await append(client, said(f"{number} " * 1_000))
        if answer.status_code != 200:
            return answer
    raise AssertionError("a full disk took a thousand messages")


async def test_a_damaged_store_is_a_problem_that_names_no_file(database: Path) -> None:
    async with client_of(create_app(Settings(DATABASE_URL=url_of(database)))) as client:
        await append(client, *(said(f"message {number} " * 50) for number in range(200)))
        damage(database)

        answer = await client.get("/v1/memory/export", params=TALK)

        assert is_problem(answer, 500, "store_corrupt")
        assert str(database) not in answer.text
