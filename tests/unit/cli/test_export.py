"""`threadkeep export`."""

import json
import os
import signal
import subprocess
import sys
import threading
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

    assert ended.json == {"out": str(out), "conversations": 3, "bytes": out.stat().st_size, "dead_letters": 0}
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


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_the_stores_own_files_are_never_replaced(threadkeep: Command, store: str, tmp_path: Path, ending: str) -> None:
    ended = threadkeep("export", "--url", store, "--out", f"{tmp_path}/store.db{ending}", "--json")

    assert (ended.code, ended.problem["field"]) == (1, "--out")
    assert "the store itself" in ended.problem["detail"]
    assert threadkeep("stats", "--url", store, "--json").json["messages"] == 4


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_the_store_by_another_name_is_still_the_store(
    threadkeep: Command, store: str, tmp_path: Path, link: object
) -> None:
    assert callable(link)
    link(tmp_path / "another.ndjson", tmp_path / "store.db")
    ended = threadkeep("export", "--url", store, "--out", "another.ndjson", "--json")

    assert (ended.code, ended.problem["field"]) == (1, "--out")
    assert threadkeep("stats", "--url", store, "--json").json["messages"] == 4


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(
    threadkeep: Command, store: str, tmp_path: Path, there: bool
) -> None:
    (tmp_path / "exports").mkdir()
    target, link = tmp_path / "exports" / "real.ndjson", tmp_path / "latest.ndjson"
    link.symlink_to(target)
    if there:
        target.write_text("the last good one")

    assert threadkeep("export", "--url", store, "--out", str(link)).code == 0
    assert link.is_symlink()
    assert len(target.read_text("utf-8").splitlines()) == 3
    assert [file.name for file in target.parent.iterdir()] == ["real.ndjson"]


def test_a_pipe_is_written_to_and_stays_a_pipe(threadkeep: Command, store: str, tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    ended = threadkeep("export", "--url", store, "--out", str(pipe), "--json")

    assert pipe.is_fifo()
    reader.join(30)
    assert len(read[0].splitlines()) == 3
    assert ended.json["bytes"] == len(read[0])


def test_a_device_is_written_to_and_stays_a_device(threadkeep: Command, store: str, tmp_path: Path) -> None:
    """By a link: were it replaced, then at worst the link."""
    (tmp_path / "nowhere").symlink_to(os.devnull)

    assert threadkeep("export", "--url", store, "--out", "nowhere").code == 0
    assert Path(os.devnull).is_char_device()
    assert (tmp_path / "nowhere").is_symlink()


@pytest.mark.parametrize("nameless", [True, False])
def test_an_exported_file_is_its_owners_alone(
    threadkeep: Command, store: str, tmp_path: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nameless:
        monkeypatch.setattr("threadkeep.cli.export._OPEN_FILES", tmp_path / "there is none")
    (tmp_path / "all.ndjson").write_text("the last good one")

    assert threadkeep("export", "--url", store, "--out", "all.ndjson").code == 0
    assert (tmp_path / "all.ndjson").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "all.ndjson").read_text("utf-8").splitlines()) == 3
    assert [file.name for file in tmp_path.glob(".*")] == []


_STOPPED_HALFWAY = """
import os, signal, sys
from threadkeep import SyncMemory
from threadkeep.cli import main

if sys.argv.pop(1) == "named":
    from threadkeep.cli import export
    export._OPEN_FILES = export.Path("/there/is/none")
number, real = signal.Signals[sys.argv.pop(1)], SyncMemory.export
if number == signal.SIGHUP:
    signal.signal(number, signal.SIG_DFL)  # under nohup, where tests may run, everybody begins by ignoring it

def stopped(memory, scope):
    try:
        yield next(real(memory, scope))
        os.kill(os.getpid(), number)
        yield from real(memory, scope)
    finally:
        os.kill(os.getpid(), number)  # nobody's patience lasts

SyncMemory.export = stopped
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("kind", ["nameless", "named"])
def test_an_export_that_is_told_to_stop_leaves_the_old_file_and_no_other(
    store: str, tmp_path: Path, number: signal.Signals, kind: str
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "all.ndjson").write_text("the last good one")
    script = [sys.executable, "-c", _STOPPED_HALFWAY, kind, number.name]
    ended = subprocess.run(
        [*script, "export", "--url", store, "--out", str(folder / "all.ndjson")], capture_output=True, text=True
    )

    assert ended.returncode == 128 + number
    assert "Traceback" not in ended.stderr
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"all.ndjson": "the last good one"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_a_killed_export_leaves_no_text_behind(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    script = [sys.executable, "-c", _STOPPED_HALFWAY, "nameless", "SIGKILL"]
    ended = subprocess.run([*script, "export", "--url", store, "--out", str(folder / "all.ndjson")])

    assert ended.returncode == -signal.SIGKILL
    assert list(folder.iterdir()) == []
