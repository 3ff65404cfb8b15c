"""Erasing on a disk that is full to the last byte: what was set aside for it is enough, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import client_of
from tests.service.disks import enlarge, fill, tiny_disk
from tests.service.talking import append, contents, is_problem, said
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep import Scope, Settings, SyncMemory, UserMessage
from threadkeep.errors import StoreFull
from threadkeep.http.app import create_app

__all__ = ["threadkeep"]
SECRET = "my hovercraft is full of eels"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with tiny_disk(tmp_path / "disk", 16_384) as disk:
        yield disk


def store(url: str, messages: int = 300) -> None:
    with SyncMemory(url, settings=Settings()) as memory:
        for number in range(messages):
            memory.append(Scope("shop", f"u{number % 3}", f"c{number % 6}"), [UserMessage(f"{SECRET} {number} " * 10)])


def fill_up(memory: SyncMemory, disk: Path) -> Path:
    ballast = fill(disk)
    try:
        for number in range(1_000):  # the log may have a little room inside
            memory.append(Scope("shop", "last", "c"), [UserMessage(f"{number} more " * 100)])
    except StoreFull:
        return ballast
    raise AssertionError("a full disk took a thousand messages")


def is_anywhere_in(disk: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in disk.glob("memory.db*"))


async def test_a_service_erases_while_every_write_is_refused(disk: Path) -> None:
    async with client_of(create_app(Settings(DATABASE_URL=f"sqlite:///{disk}/memory.db"))) as client:
        await append(client, *(said(f"{SECRET} {number} " * 10) for number in range(50)))
        other = {"tenant": "shop", "user": "u43", "conversation": "c2"}
        await append(client, said("of another"), scope=other)
        ballast = fill(disk)
        for number in range(1_000):
            answer = await append(client, said(f"{number} more " * 100), scope=other | {"conversation": "c3"})
            if answer.status_code != 200:
                break
        assert is_problem(answer, 507, "store_full")
        erased = await client.post("/v1/memory/erase", json={"scope": {"tenant": "shop", "user": "u42"}})
        assert erased.status_code == 200, erased.text
        assert erased.json()["complete"] is True
        assert await contents(client) == []
        assert await contents(client, user="u43", conversation="c2") == ["of another"]
        ballast.unlink()
        assert (await append(client, said("after"))).status_code == 200
    assert not is_anywhere_in(disk)


def test_one_message_is_erased_on_a_full_disk(disk: Path) -> None:
    me = Scope("shop", "u42", "c1")
    with SyncMemory(f"sqlite:///{disk}/memory.db", settings=Settings()) as memory:
        kept = memory.append(me, [UserMessage(SECRET), UserMessage("stays")]).kept
        fill_up(memory, disk)
        assert memory.erase(me, kept[0]).complete
        assert [one.content for one in memory.history(me).messages] == ["stays"]


def test_the_command_erases_on_a_full_disk_with_no_service_running(disk: Path, threadkeep: Command) -> None:
    """Opening takes room, too: the log and its index are made anew."""
    url = f"sqlite:///{disk}/memory.db"
    store(url)
    ballast = fill(disk)
    ended = threadkeep("erase", "--url", url, "--tenant", "shop", "--user", "u1", "--yes", "--json")
    assert ended.code == 0, ended.stdout + ended.stderr
    assert ended.json["complete"] is True
    ballast.unlink()
    with SyncMemory(url, settings=Settings()) as memory:
        assert memory.stats().messages == 200


def test_what_was_set_aside_is_set_aside_again_once_there_is_room(disk: Path) -> None:
    url = f"sqlite:///{disk}/memory.db"
    with SyncMemory(url, settings=Settings()) as memory:
        memory.append(Scope("shop", "u1", "c1"), [UserMessage(SECRET)])
        ballast = fill_up(memory, disk)
        assert memory.erase(Scope("shop", "u1")).complete
        ballast.unlink()
        memory.append(Scope("shop", "u1", "c1"), [UserMessage(SECRET)])
        assert memory.erase(Scope("shop", "u1")).complete
    reserve = disk / "memory.db-reserve"
    assert (reserve.stat().st_size, reserve.stat().st_mode & 0o777) == (1_048_576, 0o600)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with tiny_disk(tmp_path / "disk", 8_192) as disk:
        yield disk


def fill_with_messages(memory: SyncMemory, users: int, at_once: int) -> None:
    try:
        for number in range(100_000):
            user = f"u{number % users}"
            texts = [f"{SECRET} of {user}; {number} {place} " * 10 for place in range(at_once)]
            memory.append(Scope("shop", user, f"c{number % 7}"), [UserMessage(text) for text in texts], key=str(number))
    except StoreFull:
        return
    raise AssertionError("a small disk took them all")


@pytest.mark.parametrize("kilobytes", [30, 100])
def test_long_messages_leave_room_to_erase_them_on_the_disk_that_they_filled(tmp_path: Path, kilobytes: int) -> None:
    text = f"{SECRET} " * (kilobytes * 1_024 // (len(SECRET) + 1))
    with (
        tiny_disk(tmp_path / "disk", 12_288) as disk,
        SyncMemory(f"sqlite:///{disk}/memory.db", settings=Settings()) as memory,
    ):
        refused = 0
        for number in range(1_000):
            try:
                memory.append(Scope("shop", f"u{number % 5}", "c"), [UserMessage(f"{number} {text}")])
            except StoreFull:
                refused += 1
            if refused == 3:
                break
        mine = memory.stats(Scope("shop", "u0")).messages
        assert refused == 3
        assert memory.erase(Scope("shop", "u0")).stores["archive"].removed == mine > 0


@pytest.mark.parametrize(("users", "at_once"), [(2, 5), (3, 20), (20, 5)])
def test_users_are_erased_one_after_the_other_on_a_disk_that_was_filled_by_their_own_messages(
    small_disk: Path, users: int, at_once: int
) -> None:
    """Also where one of them has more than was set aside. The file is rewritten once that fits."""
    with SyncMemory(f"sqlite:///{small_disk}/memory.db", settings=Settings()) as memory:
        fill_with_messages(memory, users, at_once)
        left = memory.stats().messages
        for user in ("u0", "u1"):
            mine = memory.stats(Scope("shop", user)).messages
            proof = memory.erase(Scope("shop", user))
            assert proof.stores["archive"].removed == mine
            assert proof.stores["receipts"].removed == mine // at_once
            assert memory.stats().messages == (left := left - mine)
            assert (small_disk / "memory.db-reserve").stat().st_size >= 262_144
        memory.append(Scope("shop", "u2", "c1"), [UserMessage("after")])
        enlarge(small_disk, 32_768)
        assert all(memory.erase(Scope("shop", user)).complete for user in ("u0", "u1"))
    files = b"".join(path.read_bytes() for path in small_disk.glob("memory.db*"))
    assert not any(f"of {user};".encode() in files for user in ("u0", "u1"))
