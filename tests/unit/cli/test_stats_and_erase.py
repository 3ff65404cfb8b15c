"""`threadkeep stats` and `threadkeep erase`."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from threadkeep import ErasureProof, Scope, SyncMemory
from threadkeep.model import Erased


def test_stats_count_the_whole_store_or_a_scope(threadkeep: Command, store: str) -> None:
    everyone = threadkeep("stats", "--url", store, "--json").json
    ann = threadkeep("stats", "--url", store, "--json", "--tenant", "shop", "--user", "ann").json
    one = threadkeep(
        "stats", "--url", store, "--json", "--tenant", "shop", "--user", "ann", "--conversation", "c1",
    ).json  # fmt: skip

    assert (everyone["users"], everyone["conversations"], everyone["messages"]) == (2, 3, 4)
    assert (ann["conversations"], ann["messages"]) == (2, 3)
    assert one["by_role"] == {"assistant": 1, "user": 1}


def test_stats_for_people_are_a_table(threadkeep: Command, store: str) -> None:
    ended = threadkeep("stats", "--url", store)

    assert ended.code == 0
    assert "conversations" in ended.stdout


def test_a_tenant_alone_is_not_taken_for_the_whole_store(threadkeep: Command, store: str) -> None:
    ended = threadkeep("stats", "--url", store, "--tenant", "shop")

    assert ended.code == 2
    assert "--user" in ended.stderr


def test_erase_prints_the_proof_and_leaves_no_bytes(threadkeep: Command, store: str, tmp_path: Path) -> None:
    ended = threadkeep("erase", "--url", store, "--tenant", "shop", "--user", "ann", "--yes", "--json")

    assert ended.code == 0
    assert ended.json["complete"] is True
    assert ended.json["stores"]["archive"] == {"found": 3, "removed": 3, "failed": 0}
    assert all(b"peanuts" not in file.read_bytes() for file in tmp_path.iterdir())
    assert threadkeep("stats", "--url", store, "--json").json["users"] == 1


def test_erase_of_one_message_leaves_the_others(threadkeep: Command, store: str) -> None:
    place = ("--url", store, "--tenant", "shop", "--user", "ann")
    ended = threadkeep("erase", *place, "--conversation", "c1", "--message-id", "m1", "--yes")

    assert ended.code == 0
    assert "Erased, completely" in ended.stdout
    assert threadkeep("stats", *place, "--json").json["messages"] == 2


def test_erase_of_a_text_takes_every_message_that_says_it(threadkeep: Command, store: str, tmp_path: Path) -> None:
    place = ("--url", store, "--tenant", "shop", "--user", "ann")
    ended = threadkeep("erase", *place, "--text", "PEANUTS", "--yes", "--json")

    assert ended.code == 0
    assert ended.json["stores"]["archive"]["removed"] == 1
    assert all(b"peanuts" not in file.read_bytes() for file in tmp_path.iterdir())
    assert threadkeep("stats", *place, "--json").json["messages"] == 2


def test_a_text_and_a_message_are_not_erased_at_once(threadkeep: Command, store: str) -> None:
    place = ("--url", store, "--tenant", "shop", "--user", "ann", "--conversation", "c1")
    ended = threadkeep("erase", *place, "--text", "peanuts", "--message-id", "m1", "--yes", "--json")

    assert (ended.code, ended.problem["code"]) == (1, "invalid_input")
    assert threadkeep("stats", *place, "--json").json["messages"] == 2


def test_one_message_needs_its_conversation(threadkeep: Command, store: str) -> None:
    ended = threadkeep("erase", "--url", store, "--user", "ann", "--message-id", "m1", "--yes", "--json")

    assert (ended.code, ended.problem["code"]) == (1, "invalid_scope")


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 4), ("", 4)])
def test_erase_asks_first(
    threadkeep: Command, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, left: int
) -> None:
    (tmp_path / "typed").write_text(answer)
    with (tmp_path / "typed").open() as typed:
        monkeypatch.setattr("sys.stdin", typed)
        ended = threadkeep("erase", "--url", store, "--tenant", "shop", "--user", "ann")

    assert ended.code == (0 if answer == "y\n" else 1)
    assert "3 messages" in ended.stderr
    assert threadkeep("stats", "--url", store, "--json").json["messages"] == left


def test_with_json_nobody_is_asked_and_nothing_erased_unconfirmed(threadkeep: Command, store: str) -> None:
    ended = threadkeep("erase", "--url", store, "--tenant", "shop", "--user", "ann", "--json")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.problem["field"] == "--yes"
    assert threadkeep("stats", "--url", store, "--json").json["messages"] == 4


def test_an_erase_that_is_not_complete_ends_with_one(
    threadkeep: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = {"wal": Erased(found=1, failed=1)}
    monkeypatch.setattr(SyncMemory, "erase", lambda _, scope, __: ErasureProof(scope, stuck, 1))
    ended = threadkeep("erase", "--url", store, "--user", "ann", "--yes")

    assert ended.code == 1
    assert "NOT COMPLETE" in ended.stdout


def test_an_erase_that_does_not_reach_the_redis_of_the_settings_is_incomplete(
    threadkeep: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--url` alone still means the Redis of the settings."""
    monkeypatch.setenv("REDIS_URL", "redis://:secret@127.0.0.1:1/0")
    place = ("--url", store, "--tenant", "shop", "--user", "ann", "--yes")
    told = threadkeep("erase", *place)
    proof = threadkeep("erase", *place, "--json")

    assert (told.code, proof.code) == (1, 1)
    assert "NOT COMPLETE" in told.stdout
    assert "secret" not in told.stdout + told.stderr
    assert proof.json["stores"]["hot"]["failed"] == 1


def test_what_lies_beyond_an_erase_is_told_to_people_too(
    threadkeep: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = ErasureProof(Scope("shop", "ann"), {"archive": Erased()}, 1, notes=("backups have their own lives",))
    monkeypatch.setattr(SyncMemory, "erase", lambda *_: proof)
    ended = threadkeep("erase", "--url", store, "--user", "ann", "--yes")

    assert "backups have their own lives" in ended.stdout
