"""`threadkeep export`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from threadkeep import ConversationRecord, SyncMemory
from threadkeep.errors import StoreUnavailable


def test_an_export_to_stdout_is_one_conversation_a_line_and_nothing_else(threadkeep: Command, store: str) -> None:
    ended = threadkeep("export", "--url", store)

    places = [(record["user"], record["conversation"]) for record in map(json.loads, ended.stdout.splitlines())]
    assert places == [("ann", "c1"), ("ann", "c2"), ("bob", "c1")]


def test_an_export_of_one_user_in_the_memory_shape(threadkeep: Command, store: str) -> None:
    ended = threadkeep("export", "--url", store, "--tenant", "shop", "--user", "ann", "--format", "memory")

    first, second = map(json.loads, ended.stdout.splitlines())
    assert (first["sessionId"], first["user_messages"]) == ("c1", ["peanuts, please"])
    assert second["user_messages"] == ["Dị ứng đậu phộng"]


def test_an_export_to_a_file_reports_what_it_wrote(threadkeep: Command, store: str, tmp_path: Path) -> None:
    out = tmp_path / "all.ndjson"
    ended = threadkeep("export", "--url", store, "--out", str(out), "--json")

    assert ended.json == {"out": str(out), "conversations": 3, "bytes": out.stat().st_size}
    lines = out.read_text("utf-8").splitlines()
    assert json.loads(lines[2])["messages"][0]["content"] == "half a pair: \ud83d"


def test_a_failed_export_leaves_the_old_file_and_no_other(
    threadkeep: Command, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SyncMemory.export

    def breaks_off(memory: SyncMemory, scope: object) -> Iterator[ConversationRecord]:
        yield next(real(memory, None))
        raise StoreUnavailable("the line went dead")

    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "all.ndjson").write_text("the last good one")
    monkeypatch.setattr(SyncMemory, "export", breaks_off)
    ended = threadkeep("export", "--url", store, "--out", str(folder / "all.ndjson"))

    assert ended.code == 1
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"all.ndjson": "the last good one"}


def test_a_file_that_cannot_be_written_is_told_without_a_traceback(threadkeep: Command, store: str) -> None:
    ended = threadkeep("export", "--url", store, "--out", "no/such/folder/all.ndjson", "--json")

    assert ended.code == 1
    assert ended.problem["field"] == "--out"
